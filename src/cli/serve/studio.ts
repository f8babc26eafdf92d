import { isHeedError } from '../../base/errors.ts'
import type { ServeOptions } from '../../http/server.ts'
import { studio, type Studio } from '../../studio/index.ts'
import { exitCodes, Failure } from '../shell/failure.ts'

/** The Studio of the options, else that of this package. */
export function studioOf({ studio: given }: ServeOptions): Studio {
  try {
    return given ?? studio()
  } catch (error) {
    if (!isHeedError(error)) throw error
    throw new Failure(exitCodes.failed, 'Studio is not built.', { code: 'studio_not_built', remedy: 'npm run build', cause: error })
  }
}

/** The same for development. Undefined in a clone of Heed in which it is not built, and where the routes are at its path. */
export function devStudioOf(options: ServeOptions): Studio | undefined {
  if (options.studio === undefined && (options.prefix ?? '').startsWith('/studio')) return undefined
  try {
    return studioOf(options)
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

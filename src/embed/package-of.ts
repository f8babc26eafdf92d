import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Makes vectors faster where it is installed. */
export const fastPackage = 'onnxruntime-node'

/** A package that is the user's to install, and isn't. */
export class Missing extends Error {
  readonly packageName: string

  constructor(packageName: string, cause: unknown) {
    super(`${packageName} is not installed`, { cause })
    this.packageName = packageName
  }
}

/** Whether `packageOf` would find it. */
export function isInstalled(name: string): boolean {
  return [import.meta.url, join(process.cwd(), 'index.js')].some((from) => {
    try {
      return createRequire(from).resolve(name) !== ''
    } catch {
      return false
    }
  })
}

/** From where Heed is installed, else from the program's own folder. */
export async function packageOf<Module>(name: string): Promise<Module> {
  try {
    return (await import(name)) as Module
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
  }
  let path: string
  try {
    path = createRequire(join(process.cwd(), 'index.js')).resolve(name)
  } catch (error) {
    throw new Missing(name, error)
  }
  return (await import(pathToFileURL(path).href)) as Module
}

import { existsSync, statSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Heed } from '../../heed/heed.ts'
import type * as Server from '../../http/server.ts'
import { exitCodes, Failure } from '../shell/failure.ts'
import { loadFailure } from './load-failure.ts'

/** The module of a user, loaded: its Heed, and how it is to be served. */
interface UserModule {
  heed: Heed
  /** The export `server`: options of `serve()`. */
  options: Server.ServeOptions
  /** `serve()` of the copy of the package that made the Heed. */
  serve: typeof Server.serve
}

/** The files that are looked for where none is named, in this order. */
const defaultFiles = ['heed.ts', 'heed.js', 'heed.mjs', 'src/heed.ts', 'src/heed.js', 'src/heed.mjs']

/** The path of the user's module. */
export function findUserFile(named: string | undefined, folder = process.cwd(), what = 'your Heed'): string {
  if (named !== undefined) {
    const file = resolve(folder, named)
    if (existsSync(file) && statSync(file).isFile()) return file
    throw missing(`there is no file ${named}.`, `Name the file that exports ${what}.`)
  }
  const found = defaultFiles.map((name) => resolve(folder, name)).find((file) => existsSync(file))
  if (found !== undefined) return found
  const names = `${defaultFiles.slice(0, 3).join(', ')} or src/heed.ts`
  throw missing(`there is no ${names} here.`, 'Name the file that exports your Heed.')
}

function missing(message: string, remedy: string): Failure {
  return new Failure(exitCodes.unreachable, message, { code: 'file_not_found', remedy })
}

/** A file as messages show it. */
export function shownFile(file: string): string {
  const path = relative(process.cwd(), file)
  return path.startsWith('..') ? file : path
}

/** Reads `.env`, or the named file, into the environment; variables that are set stay as they are. */
export function loadEnvironment(named: string | undefined): string | undefined {
  const file = resolve(named ?? '.env')
  if (!existsSync(file)) {
    if (named === undefined) return undefined
    throw missing(`there is no file ${named}.`, 'Name another with --env-file.')
  }
  process.loadEnvFile(file)
  return file
}

/** Loads the module of the user as Node does: TypeScript is stripped of its types. */
export async function loadUserModule(file: string): Promise<UserModule> {
  const exported = await importUserFile(file)
  const heed = [exported.default, exported.heed].find(isHeed)
  if (!heed) {
    throw new Failure(exitCodes.failed, `${shownFile(file)} exports no Heed.`, {
      code: 'no_heed', place: shownFile(file), remedy: 'Export it by default or as heed: export const heed = new Heed({ agents: { … } })',
    })
  }
  const { server = {} } = exported
  if (typeof server !== 'object' || server === null) {
    throw new Failure(exitCodes.failed, `The export server of ${shownFile(file)} is not an object.`, {
      code: 'invalid_argument', place: shownFile(file), remedy: 'Export options of serve(): export const server = { auth: apiKeys({ … }) }',
    })
  }
  const { serve } = await importBeside<typeof Server>(file, 'heed/server', () => import('../../http/server.ts'))
  return { heed, options: server, serve }
}

/** The exports of a file of the user. Rejects with a `Failure` that names the place where it failed. */
export async function importUserFile(file: string): Promise<Record<string, unknown>> {
  let last = file
  const hooks = registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:')) last = fileURLToPath(url)
      return next(url, context)
    },
  })
  try {
    return (await import(pathToFileURL(file).href)) as Record<string, unknown>
  } catch (error) {
    throw loadFailure(error, file, last)
  } finally {
    hooks.deregister()
  }
}

/** A Heed of any copy of the package. */
function isHeed(value: unknown): value is Heed {
  const { listAgents, start, close } = Object(value) as Partial<Heed>
  return [listAgents, start, close].every((method) => typeof method === 'function')
}

/** An entry of the package that the file imports, since objects of two copies of a package do not know each other. */
export async function importBeside<Entry>(file: string, entry: string, own: () => Promise<Entry>): Promise<Entry> {
  let path: string
  try {
    path = createRequire(file).resolve(entry)
  } catch {
    return own()
  }
  return (await import(pathToFileURL(path).href)) as Entry
}

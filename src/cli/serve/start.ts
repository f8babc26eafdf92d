import type { Heed } from '../../heed/heed.ts'
import { wholeNumber } from '../shell/arguments.ts'
import { exitCodes, Failure, type ExitCode } from '../shell/failure.ts'
import type { Output } from '../shell/output.ts'
import { studioOf } from './studio.ts'
import { findUserFile, loadEnvironment, loadUserModule, shownFile } from './user-module.ts'

export interface ServeArguments {
  file: string | undefined
  port: string | undefined
  host: string | undefined
  envFile: string | undefined
}

/** Serves the Heed of a file until SIGTERM or SIGINT. */
export async function start(args: ServeArguments & { studio: boolean }, output: Output): Promise<ExitCode> {
  loadEnvironment(args.envFile)
  const file = findUserFile(args.file)
  const { heed, options, serve } = await loadUserModule(file)
  const port = requestedPort(args.port)
  const studio = args.studio ? studioOf(options) : options.studio
  const ended = untilSignal(output)
  const server = await serve(heed, {
    ...options, ...(port === undefined ? {} : { port }), ...(args.host === undefined ? {} : { hostname: args.host }),
    ...(studio === undefined ? {} : { studio }), handleSignals: false,
  }).catch((error: unknown) => {
    throw listenFailure(error, port ?? options.port ?? 4111)
  })
  const pages = studio === undefined ? {} : { studioPath: studio.path }
  announce(output, { url: server.url, prefix: options.prefix ?? '/api', file, heed, ...pages })
  const signal = await ended
  await server.close({ drainMs: signal === 'SIGTERM' ? (options.drainMs ?? 20_000) : 0 })
  output.note('closed')
  return exitCodes.done
}

/** The port of the option or of the environment; 0 takes a free one. */
export function requestedPort(option: string | undefined): number | undefined {
  if (option !== undefined) return wholeNumber('--port', option, 0, 65_535)
  const { PORT } = process.env
  return PORT === undefined || PORT === '' ? undefined : wholeNumber('PORT', PORT, 0, 65_535)
}

/** Resolves at the first SIGTERM or SIGINT. The second one ends the process at once. */
function untilSignal(output: Output): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isEnding = false
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        if (isEnding) process.exit(exitCodes.interrupted)
        isEnding = true
        output.note('closing: threads continue in other processes, or when Heed starts again (once more: end at once)')
        resolve(signal)
      })
    }
  })
}

export function listenFailure(error: unknown, port: number): unknown {
  const { code, message } = Object(error) as NodeJS.ErrnoException
  const about = { details: { port }, cause: error }
  if (code === 'EADDRINUSE')
    return new Failure(exitCodes.failed, `the port ${port} is taken.`, { ...about, code: 'port_taken', remedy: 'Name another: --port' })
  if (code !== 'EACCES' && code !== 'EADDRNOTAVAIL' && code !== 'ENOTFOUND') return error
  const remedy = 'Name another --port or --host'
  return new Failure(exitCodes.failed, `can't listen: ${message}.`, { ...about, code: 'cannot_listen', remedy })
}

export interface Announcement {
  url: string
  prefix: string
  file: string
  heed: Pick<Heed, 'listAgents'>
  /** Where Studio is served. */
  studioPath?: string
}

/** Prints the address to standard output, and the agents and what to type next to standard error. */
export function announce(output: Output, { url, prefix, file, heed, studioPath }: Announcement): void {
  const agents = Object.values(heed.listAgents()).map(({ id }) => id)
  output.note(`serving ${shownFile(file)}: ${agents.length === 0 ? 'no agents' : `agents ${agents.join(', ')}`}`)
  const studio = studioPath === undefined ? {} : { studio: `${url}${studioPath}` }
  output.answer(url, { type: 'ready', url, api: `${url}${prefix}`, ...studio, file: shownFile(file), agents, pid: process.pid })
  if (studioPath !== undefined) output.note(`Studio: ${url}${studioPath}`)
  output.note(nextSteps(url, agents))
}

/** What a person may type now. */
export function nextSteps(url: string, agents: readonly string[]): string {
  const agent = agents.length > 1 ? ` --agent ${agents[0]}` : ''
  const named = url === 'http://127.0.0.1:4111' ? '' : ` --url ${url}`
  return `next, in another terminal: heed send my-thread 'Hello' --wait answer${agent}${named}`
}

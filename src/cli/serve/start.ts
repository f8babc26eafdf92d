import { exitCodes, type ExitCode } from '../shell/failure.ts'
import type { Output } from '../shell/output.ts'
import { listenFailure, requestedPort } from './address.ts'
import { announce } from './announcement.ts'
import { studioOf } from './studio.ts'
import { findUserFile, loadEnvironment, loadUserModule } from './user-module.ts'

export interface ServeArguments {
  file: string | undefined
  port: string | undefined
  host: string | undefined
  envFile: string | undefined
}

/** Serves the Heed of a file until SIGTERM or SIGINT. */
export async function start(args: ServeArguments & { studio: boolean }, output: Output): Promise<ExitCode> {
  // A .env may name the port. One that can't be used is refused before code of the user runs.
  loadEnvironment(args.envFile)
  const port = requestedPort(args.port)
  const file = findUserFile(args.file)
  const { heed, options, serve } = await loadUserModule(file)
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

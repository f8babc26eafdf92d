import { wholeNumber } from '../shell/arguments.ts'
import { exitCodes, Failure } from '../shell/failure.ts'

/** The port of the option or of the environment; 0 takes a free one. */
export function requestedPort(option: string | undefined): number | undefined {
  if (option !== undefined) return wholeNumber('--port', option, 0, 65_535)
  const { PORT } = process.env
  return PORT === undefined || PORT === '' ? undefined : wholeNumber('PORT', PORT, 0, 65_535)
}

/** What a server that could not listen reports: the ports and hosts that a caller may correct have a code and a remedy. */
export function listenFailure(error: unknown, port: number): unknown {
  const { code, message } = Object(error) as NodeJS.ErrnoException
  const about = { details: { port }, cause: error }
  if (code === 'EADDRINUSE') {
    const remedy = 'Name another: --port, or the variable PORT'
    return new Failure(exitCodes.failed, `the port ${port} is taken.`, { ...about, code: 'port_taken', remedy })
  }
  if (code !== 'EACCES' && code !== 'EADDRNOTAVAIL' && code !== 'ENOTFOUND') return error
  const remedy = 'Name another --port or --host'
  return new Failure(exitCodes.failed, `can't listen: ${message}.`, { ...about, code: 'cannot_listen', remedy })
}

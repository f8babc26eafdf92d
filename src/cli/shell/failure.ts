import { styleText } from 'node:util'
import { describe, isHeedError } from '../../base/errors.ts'

/** What the exit codes of all commands mean. */
export const exitCodes = {
  done: 0,
  failed: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The server or a file could not be reached. */
  unreachable: 3,
  /** The server refused the key, or its principal may not do this. */
  refused: 4,
  /** The command did its work and found problems. */
  problems: 5,
  /** The thread did not accept what was sent. */
  notAccepted: 6,
  interrupted: 130,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export interface FailureOptions {
  /** A stable name of what failed. Defaults to `failed`. */
  code?: string
  /** Where it failed, such as `src/heed.ts:12:3`. */
  place?: string
  /** What to do. */
  remedy?: string
  retryable?: boolean
  details?: Record<string, unknown>
  cause?: unknown
}

/** Ends a command with an exit code and with text that is for people: what, where, what to do. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exitCode: ExitCode
  readonly options: FailureOptions

  constructor(exitCode: ExitCode, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.exitCode = exitCode
    this.options = options
  }
}

/** A command line that can't be used. */
export function wrongUsage(message: string, remedy?: string): Failure {
  return new Failure(exitCodes.usage, message, { code: 'usage', ...(remedy === undefined ? {} : { remedy }) })
}

const codesOfExit: ReadonlyArray<[ExitCode, ReadonlySet<string>]> = [
  [exitCodes.unreachable, new Set(['unreachable'])],
  [exitCodes.refused, new Set(['unauthorized', 'forbidden', 'thread_forbidden'])],
]

/** Any thrown value as a failure. */
export function toFailure(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (!isHeedError(error)) return new Failure(exitCodes.failed, describe(error), { cause: error })
  const { code, message, retryable, details } = error
  const [exitCode] = codesOfExit.find(([, codes]) => codes.has(code)) ?? [exitCodes.failed]
  return new Failure(exitCode, message, { code, retryable, cause: error, ...(details ? { details } : {}) })
}

interface ReportOptions {
  /** The words of the command, such as `policy check`; empty if there is none. */
  command: string
  isJSON: boolean
  isDebug: boolean
}

/** The report of a failure on standard error. The stack is in it with `--debug` only. */
export function reportFailure({ message, options, stack, cause }: Failure, { command, isJSON, isDebug }: ReportOptions): string {
  const { code = 'failed', place, remedy, retryable = false, details } = options
  const trace = isDebug ? ((cause instanceof Error && cause.stack) || stack) : undefined
  if (isJSON) {
    const facts = { ...details, ...(place === undefined ? {} : { place }), ...(remedy === undefined ? {} : { remedy }) }
    return JSON.stringify({ error: { code, message, retryable, details: facts, ...(trace === undefined ? {} : { stack: trace }) } })
  }
  const lines = [paint('red', `heed${command === '' ? '' : ` ${command}`}: ${message}`)]
  if (place !== undefined) lines.push(`  at ${place}`)
  if (remedy !== undefined) lines.push(...remedy.split('\n').map((line) => `  ${line}`))
  if (code !== 'failed' && code !== 'usage') lines.push(paint('dim', `  ${code}`))
  if (trace !== undefined) lines.push(paint('dim', trace))
  return lines.join('\n')
}

/** Node leaves colors out where standard error is not a terminal, and if NO_COLOR is set. */
function paint(format: 'red' | 'dim', text: string): string {
  return styleText(format, text, { stream: process.stderr })
}

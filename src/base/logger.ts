import { isatty } from 'node:tty'
import { checkNames, refused } from './arguments.ts'
import { ProgressBar, type Progress } from './progress-bar.ts'
import { redact, redactText } from './redact.ts'

/** How important a line of the log is. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Facts beside a message: ids, counts, the error. Plain data. */
export type LogFields = Record<string, unknown>

/** Receives what Heed reports outside of any call. Pass your own to `new Heed({ logger })`; secrets are removed before it is called. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /**
   * Shows how far long work is, such as indexing, several times a second; without `progress` the work has ended or pauses. A logger without
   * this method gets lines instead.
   */
  progress?(work: string, progress?: Progress): void
}

const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** What a logger writes, and how. */
export interface ConsoleLoggerOptions {
  /** The lowest level that is written. Defaults to `warn`. */
  level?: LogLevel | 'silent'
  /** One JSON object per line, for log collectors. Defaults to false: lines for people. */
  json?: boolean
  /** Writes a line. Defaults to standard error. */
  write?: (line: string) => void
  /** Draws a bar for long work in place of lines. Defaults to whether lines for people are written to a terminal. */
  progress?: boolean
}

/** A logger that writes lines to standard error. */
export function createConsoleLogger(options: ConsoleLoggerOptions = {}): Logger {
  checkNames('createConsoleLogger()', options, ['level', 'json', 'write', 'progress'])
  const { level = 'warn', json = false, write = (line) => void process.stderr.write(line) } = options
  const { progress = !json && level !== 'silent' && options.write === undefined && isTerminal() } = options
  if (level !== 'silent' && !logLevels.includes(level)) throw refused('level', `one of ${logLevels.join(', ')}, silent`)
  if (typeof json !== 'boolean') throw refused('json', 'true or false')
  if (typeof write !== 'function') throw refused('write', 'a function')
  if (typeof progress !== 'boolean') throw refused('progress', 'true or false')
  if (progress && json) throw refused('progress', 'left out where lines are JSON: a bar is none')
  const from = level === 'silent' ? logLevels.length : logLevels.indexOf(level)
  const line = json ? jsonLine : readableLine
  const bar = progress ? new ProgressBar((text) => ignoringErrors(() => write(text))) : undefined
  const log = (at: LogLevel) => redactingLog((message, fields) => {
    bar?.clear()
    return write(`${line(at, message, fields)}\n`)
  })
  const logger = loggerOf((at) => (logLevels.indexOf(at) < from ? undefined : log(at)))
  return markRedacting(bar ? { ...logger, progress: redactingProgress((work, at) => (at ? bar.show(work, at) : bar.clear())) } : logger)
}

function isTerminal(): boolean {
  return isatty(2) && process.env.TERM !== 'dumb'
}

/** The logger with secrets removed from its input. Its errors, also later ones, are ignored: no call fails because a log failed. */
export function redacting(logger: Logger): Logger {
  if (redactingLoggers.has(logger)) return logger
  const redacted = loggerOf((level) => redactingLog((message, fields) => logger[level](message, fields)))
  return markRedacting(logger.progress ? { ...redacted, progress: redactingProgress((work, at) => logger.progress?.(work, at)) } : redacted)
}

type Log = Logger[LogLevel]
type ShowProgress = NonNullable<Logger['progress']>

function loggerOf(log: (level: LogLevel) => Log | undefined): Logger {
  const nothing = () => {}
  return { debug: log('debug') ?? nothing, info: log('info') ?? nothing, warn: log('warn') ?? nothing, error: log('error') ?? nothing }
}

/** Loggers that redact already. */
const redactingLoggers = new WeakSet<Logger>()

function markRedacting(logger: Logger): Logger {
  redactingLoggers.add(logger)
  return logger
}

function redactingLog(log: Log): Log {
  return (message, fields) => ignoringErrors(() => log(redactText(message), fields && (redact(fields) as LogFields)))
}

function redactingProgress(show: ShowProgress): ShowProgress {
  return (work, progress) => ignoringErrors(() => show(redactText(work), progress))
}

function ignoringErrors(log: () => unknown): void {
  try {
    const done = log()
    if (isThenable(done)) done.then(undefined, () => {})
  } catch {
    // A failed log can't be logged.
  }
}

/** True for the promise of an asynchronous logger, which may reject later. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function readableLine(level: LogLevel, message: string, fields: LogFields | undefined): string {
  return `heed ${level}: ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`
}

function jsonLine(level: LogLevel, message: string, fields: LogFields | undefined): string {
  return JSON.stringify({ time: new Date().toISOString(), level, message, ...fields })
}

/** Writes warnings and errors to standard error, and draws bars there if it is a terminal. */
export const consoleLogger: Logger = createConsoleLogger()

/** Logs nothing. */
export const silentLogger: Logger = markRedacting(loggerOf(() => undefined))

import { redact, redactText } from './redact.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Facts beside a message: ids, counts, what went wrong. Plain data. */
export type LogFields = Record<string, unknown>

/** Where Heed reports what nobody awaits. Pass your own to `new Heed({ logger })`: what it is given has no secrets in it. */
export interface Logger {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

export interface ConsoleLoggerOptions {
  /** The least that is written. Defaults to `warn`. */
  level?: LogLevel | 'silent'
  /** One JSON object a line, for collectors. Defaults to false: a line to read. */
  json?: boolean
  /** Takes a line. Defaults to standard error. */
  write?: (line: string) => void
}

/** A logger that writes lines to standard error. */
export function createConsoleLogger({ level = 'warn', json = false, write = (line) => void process.stderr.write(line) }: ConsoleLoggerOptions = {}): Logger {
  const from = level === 'silent' ? logLevels.length : logLevels.indexOf(level)
  const line = json ? jsonLine : readableLine
  return marked(loggerOf((at) => (logLevels.indexOf(at) < from ? undefined : cleaned((message, fields) => write(`${line(at, message, fields)}\n`)))))
}

/** The logger behind a door that lets no secret through. What it throws, now or later, is dropped: nothing fails because it could not be logged. */
export function redacting(logger: Logger): Logger {
  return clean.has(logger) ? logger : marked(loggerOf((level) => cleaned((message, fields) => logger[level](message, fields))))
}

type Log = Logger[LogLevel]

function loggerOf(log: (level: LogLevel) => Log | undefined): Logger {
  const nothing = () => {}
  return { debug: log('debug') ?? nothing, info: log('info') ?? nothing, warn: log('warn') ?? nothing, error: log('error') ?? nothing }
}

/** Those that are given nothing secret. */
const clean = new WeakSet<Logger>()

function marked(logger: Logger): Logger {
  clean.add(logger)
  return logger
}

function cleaned(log: Log): Log {
  return (message, fields) => {
    try {
      const done: unknown = log(redactText(message), fields && (redact(fields) as LogFields))
      if (isThenable(done)) done.then(undefined, () => {})
    } catch {
      // There is nowhere left to say it.
    }
  }
}

/** A logger may be asynchronous, and fail later. */
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
}

function readableLine(level: LogLevel, message: string, fields: LogFields | undefined): string {
  return `heed ${level}: ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}`
}

function jsonLine(level: LogLevel, message: string, fields: LogFields | undefined): string {
  return JSON.stringify({ time: new Date().toISOString(), level, message, ...fields })
}

/** Warnings and errors on standard error, the rest nowhere. */
export const consoleLogger: Logger = createConsoleLogger()

export const silentLogger: Logger = marked(loggerOf(() => undefined))

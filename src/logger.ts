/** Where Heed reports what nobody awaits. Pass your own to `new Heed({ logger })`. */
export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

const nothing = () => {}

/** Warnings and errors on standard error, the rest nowhere. */
export const consoleLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: (message, fields) => write('warn', message, fields),
  error: (message, fields) => write('error', message, fields),
}

export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing }

function write(level: string, message: string, fields: Record<string, unknown> | undefined): void {
  process.stderr.write(`heed ${level}: ${message}${fields ? ` ${JSON.stringify(fields)}` : ''}\n`)
}

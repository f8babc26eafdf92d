import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { HeedError } from '../base/errors.ts'
import type { Heed } from '../heed/heed.ts'
import { createAnswering, defaults, type HandlerOptions } from './handler.ts'
import { isLoopback } from './auth/host.ts'
import { NodeListener } from './request/node-exchange.ts'

export { createHandler, type Handler, type HandlerOptions } from './handler.ts'
export { apiKeys } from './auth/api-keys.ts'
export { jwt, type JwtClaims, type JwtOptions } from './auth/jwt.ts'
export type { Authenticate, Principal } from './auth/principal.ts'
export type { CorsOptions } from './auth/cors.ts'
export type { ContextOf } from './request/request-context.ts'
export type { RateLimitOptions } from './auth/rate-limit.ts'

export interface ServeOptions extends HandlerOptions {
  /** Defaults to 4111; 0 takes a free one. */
  port?: number
  /** Defaults to this machine alone. Anything else needs `auth`. */
  hostname?: string
  /** On SIGTERM and SIGINT, let go of clients and hand threads over to whoever serves next. Defaults to true. */
  handleSignals?: boolean
}

export interface RunningServer {
  url: string
  /** Takes nothing new, lets requests finish once it is known who asks, hands threads over, and closes the Heed. */
  close(): Promise<void>
}

/** How long requests that are being answered have after `close()`, before their connections are cut. */
const graceMs = 10_000

/** Ten probes, one a second, and some more. */
const probingMs = 15_000

/** Serves a Heed on Node, and starts it: what an earlier process left is taken up. */
export async function serve(heed: Heed, options: ServeOptions = {}): Promise<RunningServer> {
  const { port = 4111, hostname = '127.0.0.1', handleSignals = true, ...handlerOptions } = options
  const open = handlerOptions.auth === undefined || handlerOptions.auth === 'local'
  if (open && !isLoopback(hostname)) {
    throw new HeedError('invalid_argument', `Serving on ${hostname} needs auth: apiKeys(), jwt(), or a function that says who asks. Without it only this machine may ask.`, { details: { option: 'auth' } })
  }
  const answering = createAnswering(heed, { ...handlerOptions, auth: handlerOptions.auth ?? 'local' })
  const { heartbeatMs = defaults.heartbeatMs, stallMs = defaults.stallMs } = handlerOptions
  // A peer that is gone without a word is found by the probes of TCP, as long as they are over before the next heartbeat is on its way.
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: Math.max(1_000, heartbeatMs - probingMs) }
  const listener = new NodeListener((asked) => answering.answer(asked))
  const server = createServer(keepAlive, listener.listen)
  // A watcher that stopped reading was told so; whoever doesn't take even that, or an answer, keeps no connection for it.
  server.timeout = 4 * stallMs
  server.on('timeout', (socket) => {
    if (socket.writableLength > 0) socket.resetAndDestroy()
  })
  // Longer than proxies keep theirs, so that none of them sends into a connection that is just being closed.
  server.keepAliveTimeout = 65_000
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await heed.start()
  try {
    await listen(server, port, hostname)
  } catch (error) {
    await heed.close()
    throw error
  }

  let closing: Promise<void> | undefined
  const close = () => (closing ??= shutDown())
  const shutDown = async () => {
    for (const signal of signals) process.off(signal, onSignal)
    answering.close()
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    // A connection that is kept for the next request would keep the server for as long.
    listener.close(() => setImmediate(() => server.closeIdleConnections()))
    server.closeIdleConnections()
    // Nothing was ever asked on these, and to Node they are not idle: some clients open one for later.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    const cut = heed.clock.after(graceMs, () => server.closeAllConnections(), { background: true })
    await heed.close()
    await closed
    cut.cancel()
  }
  const onSignal = () => {
    void close().then(() => process.exit(0), (error: unknown) => {
      heed.logger.error('closing failed', { error: String(error) })
      process.exit(1)
    })
  }
  const signals = ['SIGTERM', 'SIGINT'] as const
  if (handleSignals) for (const signal of signals) process.once(signal, onSignal)
  const { port: taken } = server.address() as AddressInfo
  return { url: `http://${hostname.includes(':') ? `[${hostname}]` : hostname}:${taken}`, close }
}

function listen(server: Server, port: number, hostname: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, hostname, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

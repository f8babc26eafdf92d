import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { checkNames, checkText, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { CloseOptions } from '../heed/config.ts'
import type { Heed } from '../heed/heed.ts'
import { isLoopback } from './request/exchange.ts'
import { defaults, optionNames, RequestHandler, type HandlerOptions, type ServerLimits } from './handler.ts'
import { NodeListener } from './request/node-exchange.ts'

export { createHandler, type Handler, type HandlerLimits, type HandlerOptions, type ServerLimits } from './handler.ts'
export { apiKeys } from './auth/principal.ts'
export { principalScopes, type PrincipalScope } from './auth/scopes.ts'
export { jwt, type JwtClaims, type JwtOptions } from './auth/jwt.ts'
export type { AuthContext, Authenticate, Principal } from './auth/principal.ts'
export type { CorsOptions } from './auth/cors.ts'
export type { ContextOf } from './request/call.ts'
export type { RateLimitOptions } from './auth/rate-limit.ts'

/** The options of `serve()`. */
export interface ServeOptions extends Omit<HandlerOptions, 'limits'> {
  /** What callers may use, beyond which they are rejected. */
  limits?: ServerLimits
  /** Defaults to 4111; 0 takes a free port. */
  port?: number
  /** The address to listen on. Defaults to this machine only; any other needs `auth`. */
  hostname?: string
  /** On SIGTERM and SIGINT, disconnect clients and hand threads over to other processes. Defaults to true. */
  handleSignals?: boolean
  /**
   * How long runs may go on to their next boundary after SIGTERM, in milliseconds. Until then requests are accepted: what they send is
   * stored, and other processes run it. A second signal ends the wait; SIGINT does not wait. Defaults to 20 s.
   */
  drainMs?: number
}

/** A server that listens. */
export interface RunningServer {
  url: string
  /**
   * Stops accepting requests, lets authenticated ones finish, hands threads over, and closes the Heed. With `drainMs`, runs go on to their
   * next boundary first, for at most so long, and requests are accepted until then.
   */
  close(options?: CloseOptions): Promise<void>
}

/** How long active requests may take after `close()` before their connections are cut. */
const graceMs = 10_000

/** How long TCP needs to find a dead peer: ten probes, one a second, and a margin. */
const probingMs = 15_000

/** Serves a Heed on Node, and starts it: runs that an earlier process left are continued. */
export async function serve(heed: Heed, options: ServeOptions = {}): Promise<RunningServer> {
  checkServeOptions(options)
  const { port = 4111, hostname = '127.0.0.1', handleSignals = true, drainMs: onSigterm = 20_000, ...handlerOptions } = options
  const handler = new RequestHandler(heed, { ...handlerOptions, auth: handlerOptions.auth ?? 'local' })
  const { heartbeatMs = defaults.heartbeatMs, stallMs = defaults.stallMs } = handlerOptions
  // TCP probes find a peer that is gone, provided that they end before the next heartbeat is sent.
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: Math.max(1_000, heartbeatMs - probingMs) }
  const listener = new NodeListener((request) => handler.respond(request))
  // Other upgrades, such as to HTTP/2, are not asked for: their requests are answered as they are.
  const shouldUpgradeCallback = ({ headers }: IncomingMessage) => headers.upgrade?.toLowerCase() === 'websocket'
  const server = createServer({ ...keepAlive, shouldUpgradeCallback }, listener.listen)
  server.on('upgrade', listener.upgrade)
  // The stream of a client that stopped reading ends with a reason; a client that does not read that, or a response, is reset.
  server.timeout = 4 * stallMs
  server.on('timeout', (socket) => {
    if (socket.writableLength > 0) socket.resetAndDestroy()
  })
  // Longer than the keep-alive of proxies, so that none of them sends into a connection that is being closed.
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
  const atOnce = new AbortController()
  const close = async (given: CloseOptions = {}) => {
    checkNames('close()', given, ['drainMs'])
    const { drainMs = 0 } = given
    checkWhole('drainMs', drainMs)
    await (closing ??= shutDown(drainMs))
  }
  const shutDown = async (drainMs: number) => {
    if (drainMs > 0) await heed.drain(drainMs, atOnce.signal)
    for (const signal of signals) process.off(signal, onSignal)
    handler.close()
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    // A kept-alive connection would keep the server open.
    listener.close(() => setImmediate(() => server.closeIdleConnections()))
    server.closeIdleConnections()
    // Some clients open connections in advance. Node does not count those as idle.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    const cut = heed.clock.after(graceMs, () => {
      server.closeAllConnections()
      handler.cutSockets()
    }, { background: true })
    await heed.close()
    await closed
    cut.cancel()
  }
  const onSignal = (signal: NodeJS.Signals) => {
    if (closing || signal === 'SIGINT') atOnce.abort()
    void close({ drainMs: signal === 'SIGINT' ? 0 : onSigterm }).then(() => process.exit(0), (error: unknown) => {
      heed.logger.error('closing the server failed', { error: String(error) })
      process.exit(1)
    })
  }
  const signals = ['SIGTERM', 'SIGINT'] as const
  if (handleSignals) for (const signal of signals) process.on(signal, onSignal)
  const { port: boundPort } = server.address() as AddressInfo
  return { url: `http://${hostname.includes(':') ? `[${hostname}]` : hostname}:${boundPort}`, close }
}

function checkServeOptions(options: ServeOptions): void {
  checkNames('serve()', options, [...optionNames, 'port', 'hostname', 'handleSignals', 'drainMs'])
  const { port = 4111, hostname = '127.0.0.1', handleSignals = true, drainMs = 0, auth } = options
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw refused('port', 'a whole number from 0 to 65535')
  checkText('hostname', hostname)
  if (typeof handleSignals !== 'boolean') throw refused('handleSignals', 'true or false')
  checkWhole('drainMs', drainMs)
  const isOpen = auth === undefined || auth === 'local'
  if (isOpen && !isLoopback(hostname)) {
    throw new HeedError(
      'invalid_argument',
      `Serving on ${hostname} needs auth: apiKeys(), jwt(), or a function that returns a principal. Without it, serve on localhost.`,
      { details: { option: 'auth' } },
    )
  }
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

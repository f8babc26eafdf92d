import { Hono } from 'hono'
import { HeedError, isHeedError } from '../errors.ts'
import type { Heed } from '../heed.ts'
import { Cors, type CorsOptions } from './cors.ts'
import { EventStreams } from './event-stream.ts'
import { asAbsent, failed } from './failure.ts'
import { Lingering } from './lingering.ts'
import { Metrics } from './metrics.ts'
import { openApi } from './openapi.ts'
import { localPrincipal, type Authenticate, type Principal } from './principal.ts'
import { RateLimit, type RateLimitOptions } from './rate-limit.ts'
import { RequestChecks } from './request-checks.ts'
import { contextFrom, type ContextOf } from './request-context.ts'
import type { Call, Route } from './route.ts'
import { routes } from './routes/index.ts'

export interface HandlerOptions {
  /**
   * Who asks, and whose threads they may reach. Without it every request is refused; `'local'` trusts everyone who says `localhost`,
   * and is for servers that only this machine can reach.
   */
  auth?: Authenticate | 'local'
  /** Where the routes begin. Defaults to `/api`. */
  prefix?: string
  cors?: CorsOptions
  /** The request context of runs that a request starts: trusted values, by who asks. Without it, what callers write is taken. */
  requestContext?: ContextOf
  /** Requests per caller. Unlimited unless given. */
  rateLimit?: RateLimitOptions
  /** The largest body. Defaults to 4 MB. */
  maxBodyBytes?: number
  /** A comment is sent to watchers after so much silence. Defaults to 25 s. */
  heartbeatMs?: number
  /** A watcher that takes nothing for so long, although there is something, is let go. Defaults to 30 s. */
  stallMs?: number
  /** What a client watched is kept for so long after it is gone, so that it can go on where it was. Defaults to 30 s. */
  lingerMs?: number
}

/** The server as a function: mount it wherever a `Request` becomes a `Response`. */
export interface Handler {
  (request: Request): Promise<Response>
  /** Ends open streams, so that clients come back to whoever serves next. The Heed stays open. */
  close(): void
}

/** Of streams, in milliseconds. */
export const defaults = { heartbeatMs: 25_000, stallMs: 30_000 }

const secure: Record<string, string> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/** Everything a Heed can do, over HTTP. */
export function createHandler(heed: Heed, options: HandlerOptions = {}): Handler {
  const { prefix = '/api', maxBodyBytes = 4 * 1024 * 1024, heartbeatMs = defaults.heartbeatMs, stallMs = defaults.stallMs, lingerMs = 30_000 } = options
  const events = new EventStreams({ clock: heed.clock, logger: heed.logger, heartbeatMs, stallMs })
  const lingering = new Lingering(heed.clock, lingerMs)
  const metrics = new Metrics(events)
  const limit = options.rateLimit ? new RateLimit(options.rateLimit, heed.clock) : undefined
  const cors = new Cors(options.cors)
  const table = routes({ metrics, openApi: () => openApi(table, prefix) })
  const app = new Hono()
  const methods = new Map<string, string[]>()

  for (const route of table) {
    const path = prefix + route.path
    methods.set(path, [...(methods.get(path) ?? []), route.method])
    const checks = new RequestChecks(route, maxBodyBytes)
    app.on(route.method, path, async ({ req }) => {
      const request = req.raw
      const params = req.param() as Record<string, string>
      try {
        const principal = route.open ? anonymous : await authenticate(request, options.auth)
        limit?.take(principal.id)
        const { query, body, idempotencyKey } = await checks.read(request)
        const call: Call = {
          heed, params, query, body, principal, idempotencyKey, events, lingering, request, signal: request.signal,
          context: (given) => contextFrom(options.requestContext, principal, request, given),
          get agent() {
            return agentOf(heed, params.agentId ?? '')
          },
        }
        return answered(await route.handle(call))
      } catch (error) {
        return failed(route.read ? asAbsent(error, params.threadId ?? threadOf(request)) : error, heed.logger, { method: route.method, path: route.path })
      }
    })
  }
  for (const [path, allowed] of methods) {
    app.all(path, () => failed(new HeedError('method_not_allowed', `Use ${allowed.join(' or ')} here.`), heed.logger, { method: '', path }))
  }
  app.notFound(({ req }) => failed(new HeedError('not_found', `There is nothing at ${req.path}.`), heed.logger, { method: req.method, path: req.path }))

  const handle = async (request: Request): Promise<Response> => {
    const response = cors.preflight(request) ?? (await app.fetch(request))
    for (const [name, value] of Object.entries(secure)) response.headers.set(name, value)
    cors.mark(request, response)
    metrics.count(request.method, response.status)
    return response
  }
  const close = () => {
    lingering.close()
    events.close()
  }
  return Object.assign(handle, { close })
}

const anonymous: Principal = { id: 'anonymous', resources: [] }

async function authenticate(request: Request, auth: HandlerOptions['auth']): Promise<Principal> {
  if (auth === 'local') {
    // A page of another site that was made to resolve to this machine still says its own name.
    if (isLoopback(new URL(request.url).hostname)) return localPrincipal
    throw new HeedError('unauthorized', 'This server is open to this machine only. Ask it as localhost, or set up auth.')
  }
  if (!auth) throw new HeedError('unauthorized', "This server has no auth and is closed. Pass auth: a function that says who asks, apiKeys(), jwt(), or 'local'.")
  let principal
  try {
    principal = await auth(request)
  } catch (error) {
    if (isHeedError(error)) throw error
    throw new HeedError('unauthorized', 'Who you are could not be found out.', { cause: error })
  }
  if (!principal) throw new HeedError('unauthorized', 'Say who you are: an Authorization header that this server knows.')
  return principal
}

export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || hostname === '::1' || /^127(?:\.\d{1,3}){3}$/.test(hostname) || hostname.endsWith('.localhost')
}

/** By its id, or by the key under which it is registered. */
function agentOf(heed: Heed, name: string): Call['agent'] {
  const all = heed.listAgents()
  const agent = Object.values(all).find(({ id }) => id === name) ?? (Object.hasOwn(all, name) ? all[name] : undefined)
  if (!agent) throw new HeedError('unknown_agent', `There is no agent '${name}'.`, { details: { agentId: name } })
  return agent
}

function threadOf(request: Request): string | undefined {
  return new URL(request.url).searchParams.get('threadId') ?? undefined
}

function answered(answer: unknown): Response {
  if (answer instanceof Response) return answer
  const response = Response.json(answer ?? null)
  response.headers.set('cache-control', 'no-store')
  return response
}

export type { Route }

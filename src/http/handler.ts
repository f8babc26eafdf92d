import { HeedError, isHeedError } from '../base/errors.ts'
import type { Heed } from '../heed/heed.ts'
import { AuthWaits } from './auth/auth-waits.ts'
import { Cors, type CorsOptions } from './auth/cors.ts'
import { EventStreams } from './sse/event-stream.ts'
import { answerOf, jsonAnswer, PlatformAsked, responseOf, type Answer, type Asked } from './request/exchange.ts'
import { asAbsent, failed } from './request/failure.ts'
import { withRequestSpan } from '../tracing/incoming.ts'
import { isLoopback } from './auth/host.ts'
import { Lingering } from './sse/grace-period.ts'
import { Metrics } from './metrics.ts'
import { openApi } from './openapi.ts'
import { flawOf, localPrincipal, type Authenticate, type Principal } from './auth/principal.ts'
import { RateLimit, type RateLimitOptions } from './auth/rate-limit.ts'
import { RequestChecks } from './request/request-checks.ts'
import { RequestCall, type Serving } from './request/request-call.ts'
import type { ContextOf } from './request/request-context.ts'
import type { Route } from './route.ts'
import { RouteTable } from './route-table.ts'
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
  /** Ends open streams, and lets go of requests that `auth` hasn't answered, so that clients come back to whoever serves next. The Heed stays open. */
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
  const { answer, close } = createAnswering(heed, options)
  return Object.assign(async (request: Request) => responseOf(await answer(new PlatformAsked(request)), request.method), { close })
}

/** The same for requests of any kind. */
export function createAnswering(heed: Heed, options: HandlerOptions): { answer(asked: Asked): Promise<Answer>; close(): void } {
  const { prefix = '/api', maxBodyBytes = 4 * 1024 * 1024, heartbeatMs = defaults.heartbeatMs, stallMs = defaults.stallMs, lingerMs = 30_000 } = options
  const events = new EventStreams({ clock: heed.clock, logger: heed.logger, heartbeatMs, stallMs })
  const lingering = new Lingering(heed.clock, lingerMs)
  const metrics = new Metrics(events)
  const waits = new AuthWaits(heed.clock)
  const limit = options.rateLimit ? new RateLimit(options.rateLimit, heed.clock) : undefined
  const cors = new Cors(options.cors)
  const all = routes({ metrics, openApi: () => openApi(all, prefix) })
  const table = new RouteTable<{ route: Route; checks: RequestChecks }>()
  for (const route of all) table.add(route.method, prefix + route.path, { route, checks: new RequestChecks(route, maxBodyBytes) })

  const serving: Serving = { heed, events, lingering, requestContext: options.requestContext }

  const answerAt = async ({ route, checks }: { route: Route; checks: RequestChecks }, params: Record<string, string>, asked: Asked): Promise<Answer> => {
    try {
      const found = route.open ? anonymous : authenticate(asked, options.auth, heed, waits)
      const principal = found instanceof Promise ? await found : found
      if (!route.unlimited) limit?.take(route.open ? `from ${asked.remote ?? 'anywhere'}` : `as ${principal.id}`)
      const call = new RequestCall(serving, asked, principal, params, await checks.read(asked))
      if (!call.isPlaced) await call.place()
      return answered(await withRequestSpan(heed.tracing, () => asked.header('traceparent'), () => route.handle(call)))
    } catch (error) {
      return failed(route.read ? asAbsent(error, params.threadId ?? new URLSearchParams(asked.search).get('threadId') ?? undefined) : error, heed.logger, { method: route.method, path: route.path })
    }
  }
  const dispatch = (asked: Asked): Promise<Answer> | Answer => {
    const { method, path } = asked
    const found = table.find(path)
    if (!found) return failed(new HeedError('not_found', `There is nothing at ${path}.`), heed.logger, { method, path })
    const target = found.targets.get(method === 'HEAD' ? 'GET' : method)
    if (target) return answerAt(target, found.params, asked)
    const methods = [...found.targets.keys()]
    const refused = failed(new HeedError('method_not_allowed', `Use ${methods.join(' or ')} here.`), heed.logger, { method: '', path })
    refused.headers.allow = methods.flatMap((one) => (one === 'GET' ? ['GET', 'HEAD'] : one)).join(', ')
    return refused
  }
  return {
    async answer(asked) {
      let answer: Answer
      try {
        answer = cors.preflight(asked) ?? (await dispatch(asked))
        cors.mark(asked, answer)
      } catch (error) {
        // Only what was handed in can fail here: a function that decides about origins.
        answer = failed(error, heed.logger, { method: asked.method, path: asked.path })
      }
      Object.assign(answer.headers, secure)
      metrics.count(asked.method, answer.status)
      return answer
    },
    close() {
      waits.close()
      lingering.close()
      events.close()
    },
  }
}

const anonymous: Principal = { id: 'anonymous', resources: [] }

function authenticate(asked: Asked, auth: HandlerOptions['auth'], heed: Heed, waits: AuthWaits): Principal | Promise<Principal> {
  if (auth === 'local') {
    // A page of another site that was made to resolve to this machine still says its own name.
    if (isLoopback(asked.hostname)) return localPrincipal
    throw new HeedError('unauthorized', 'This server is open to this machine only. Ask it as localhost, or set up auth.')
  }
  if (!auth) throw new HeedError('unauthorized', "This server has no auth and is closed. Pass auth: a function that says who asks, apiKeys(), jwt(), or 'local'.")
  return principalBy(auth, asked, heed, waits)
}

async function principalBy(auth: Authenticate, asked: Asked, heed: Heed, waits: AuthWaits): Promise<Principal> {
  let principal
  let flaw: string | undefined
  try {
    const found = auth(asked.request)
    principal = isLater(found) ? await waits.inTime(found) : found
    flaw = principal ? flawOf(principal) : undefined
  } catch (error) {
    if (isHeedError(error)) throw error
    throw new HeedError('unauthorized', 'Who you are could not be found out.', { cause: error })
  }
  if (!principal) throw new HeedError('unauthorized', 'Say who you are: an Authorization header that this server knows.')
  if (flaw === undefined) return principal
  heed.logger.error('auth answered something that is no principal, and the request was refused', { flaw })
  throw new HeedError('unauthorized', 'Who you are could not be found out.')
}

/** Promises of any make. */
function isLater<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value
}

function answered(value: unknown): Answer {
  return value instanceof Response ? answerOf(value) : jsonAnswer(200, value ?? null, { 'cache-control': 'no-store' })
}

export type { Route }

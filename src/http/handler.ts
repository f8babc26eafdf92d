import { checkNames, checkObject, checkWhole, refused } from '../base/arguments.ts'
import type { Clock } from '../base/clock.ts'
import { HeedError, isHeedError } from '../base/errors.ts'
import { silentLogger, type Logger } from '../base/logger.ts'
import { isPromise } from '../base/promises.ts'
import type { Heed } from '../heed/heed.ts'
import type { Studio } from '../studio/index.ts'
import { withQuota, type Quota } from '../store/contract/usage.ts'
import { offeredProtocols } from '../socket/handshake.ts'
import { withRequestSpan } from '../tracing/traceparent.ts'
import { ticketPrefix } from '../voice/wire.ts'
import { Authenticator } from './auth/authenticator.ts'
import { Cors, type CorsOptions } from './auth/cors.ts'
import { PolicyGuard } from './auth/policy-guard.ts'
import { isOperator, type Authenticate, type Principal } from './auth/principal.ts'
import { StreamTickets } from './auth/stream-tickets.ts'
import { RateLimit, type RateLimitOptions } from './auth/rate-limit.ts'
import { checkScope, furtherScope, hasScope, principalScopes, scopeOfRequest, type PrincipalScope } from './auth/scopes.ts'
import { checkSenderApproval } from './auth/undecided-calls.ts'
import { absentRoute } from './routes/existing-clients/absent.ts'
import { Metrics } from './routes/operations.ts'
import { RunCallers } from './request/access.ts'
import { checkCounts } from './request/check-counts.ts'
import { checkParts } from './request/check-parts.ts'
import { checkTexts } from './request/check-texts.ts'
import { ErrorTexts } from './request/error-texts.ts'
import { checkNamedOnce } from './request/named-once.ts'
import { errorResponse, hideForeignThread } from './request/error-response.ts'
import {
  FetchHttpRequest, fromFetchResponse, jsonResponse, toFetchResponse, Upgrade, type HttpRequest, type HttpResponse,
} from './request/exchange.ts'
import { RequestCall, RequestReader, type ContextOf, type ServerContext } from './request/call.ts'
import { isSimple, isStreaming, openApi, RouteTable, type Route } from './route.ts'
import { allRoutes } from './routes/index.ts'
import { EventStreams, GracePeriod } from './sse/event-stream.ts'
import { isBelow, StudioRoute } from './studio-route.ts'
import { VoiceSockets, type VoiceLimits } from './voice/voice-sockets.ts'

/** The options of `createHandler()`. */
export interface HandlerOptions {
  /**
   * Finds the principal of each request. Without it every request is rejected. `'local'` accepts every request to `localhost`, and is for
   * servers that only this machine can reach.
   */
  auth?: Authenticate | 'local'
  /** The path below which the routes are mounted. Defaults to `/api`. */
  prefix?: string
  cors?: CorsOptions
  /** Makes the request context of the runs that a request starts, from trusted values. Without it, the context in the request is used. */
  requestContext?: ContextOf
  /** Limits the requests of each principal. Unlimited by default. */
  rateLimit?: RateLimitOptions
  /** Limits that hold by default. */
  limits?: HandlerLimits
  /** The largest body. Defaults to 4 MB. */
  maxBodyBytes?: number
  /** A comment is sent to subscribers after this time without a chunk. Defaults to 25 s. */
  heartbeatMs?: number
  /** A subscriber that reads nothing for this long, although chunks are ready, is disconnected. Defaults to 30 s. */
  stallMs?: number
  /** How long the subscription of a disconnected client is kept, so that it can continue at its cursor. Defaults to 30 s. */
  lingerMs?: number
  /**
   * Signs the tickets of streams; several during a rotation, the first of which signs. Needed where several processes answer for one
   * address. Defaults to a random secret of this server.
   */
  ticketSecret?: string | readonly string[]
  /** Also serves Studio: `studio()` of `heed/studio`. Its page has no data and needs no credentials; what it shows is read by its user. */
  studio?: Studio
}

/** What callers may use of a handler. */
export interface HandlerLimits {
  /** The open event streams of one principal that is no operator. Defaults to 500. */
  streamsPerPrincipal?: number
  /** The open event streams of all principals. Defaults to 10,000. */
  streams?: number
  /** The shortest interval of the schedules that a principal which is no operator creates, in milliseconds. Defaults to a minute. */
  scheduleMs?: number
  /** The schedules of one resource that are not done. Defaults to 100. Operators are exempt, as from the other limits of a resource. */
  schedulesPerResource?: number
  /** The schedules of all resources that are not done. Defaults to 10,000. */
  schedules?: number
  /** The open watches of one resource. Defaults to 100. What a run registers is limited by `watches.maxOpen` of its agent. */
  watchesPerResource?: number
  /** The open watches of all resources. Defaults to 10,000. */
  watches?: number
  /** The threads of one resource, without child threads that agents create. Defaults to 10,000. */
  threadsPerResource?: number
  /** The threads of all resources. Unlimited by default. */
  threads?: number
  /** The bytes that are stored of one resource: messages, pending signals, notifications, metadata, working memory. Defaults to 1 GB. */
  bytesPerResource?: number
  /** The bytes that are stored of all resources. Unlimited by default. */
  bytes?: number
  /**
   * The requests of one principal that is no operator, by the scope that its route needs. Defaults to 600 a minute for `run` and for
   * `send`, and 6,000 for each other scope; false: unlimited.
   */
  requests?: Partial<Record<PrincipalScope, RateLimitOptions>> | false
}

/** What callers may use of a server: it knows their network addresses, and has WebSockets. */
export interface ServerLimits extends HandlerLimits {
  /**
   * The failed logins of one network address, after which its requests are answered with 429, whatever their credentials. Defaults to 60 a
   * minute; false: unlimited. Behind a proxy all callers have its address.
   */
  failedLogins?: RateLimitOptions | false
  /** The voice sessions of one principal that is no operator. Defaults to 10. */
  voiceSessionsPerPrincipal?: number
  /** The voice sessions of all principals. Defaults to 1,000. */
  voiceSessions?: number
  /** The largest message of the client of a voice session, in bytes. Defaults to 256 kB. */
  voiceMessageBytes?: number
  /** A voice session ends after so long without a message of its client, in milliseconds. Defaults to 5 minutes. */
  voiceIdleMs?: number
  /** The longest voice session, in milliseconds. Defaults to an hour. */
  voiceMs?: number
}

/** The options of a handler that `serve()` calls. */
export type ServedOptions = Omit<HandlerOptions, 'limits'> & { limits?: ServerLimits }

/** The server as a function from `Request` to `Response`, for any framework. */
export interface Handler {
  (request: Request): Promise<Response>
  /** Ends open streams and rejects requests whose `auth` is pending, so that clients connect to another process. The Heed stays open. */
  close(): void
}

/** Of event streams, in milliseconds. */
export const defaults = { heartbeatMs: 25_000, stallMs: 30_000 }

const securityHeaders: Record<string, string> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

const anonymous: Principal = { id: 'anonymous', resources: [] }

/** Serves all routes of a Heed, and starts it: runs that an earlier process left are continued, and what is due is sent. */
export function createHandler(heed: Heed, options: HandlerOptions = {}): Handler {
  const given: unknown = options
  checkObject('The server', given)
  checkLimitsOfHandler(options.limits)
  const handler = new RequestHandler(heed, options)
  heed.begin().catch((error: unknown) => heed.reportFailedStart(error))
  const handle = async (request: Request) => toFetchResponse(await handler.respond(new FetchHttpRequest(request)), request.method)
  return Object.assign(handle, { close: () => handler.close() })
}

interface Target {
  route: Route
  reader: RequestReader
}

export const optionNames: ReadonlyArray<keyof HandlerOptions> = [
  'auth', 'prefix', 'cors', 'requestContext', 'rateLimit', 'limits', 'maxBodyBytes', 'heartbeatMs', 'stallMs', 'lingerMs', 'ticketSecret',
  'studio',
]

const socketLimits = ['voiceSessionsPerPrincipal', 'voiceSessions', 'voiceMessageBytes', 'voiceIdleMs', 'voiceMs'] as const

const numberedLimits = [
  ...socketLimits,
  'streamsPerPrincipal', 'streams', 'scheduleMs', 'schedulesPerResource', 'schedules', 'watchesPerResource', 'watches',
  'threadsPerResource', 'threads', 'bytesPerResource', 'bytes',
] as const

/** What a request of an operator may store, and one of another principal. */
function quotasOf(limits: ServerLimits): { operator: Quota; tenant: Quota } {
  const { schedules = 10_000, watches = 10_000, threads, bytes } = limits
  const all = { schedules, watches, ...(threads === undefined ? {} : { threads }), ...(bytes === undefined ? {} : { bytes }) }
  const { schedulesPerResource = 100, watchesPerResource = 100, threadsPerResource = 10_000, bytesPerResource = 1_000_000_000 } = limits
  const resource = {
    schedules: schedulesPerResource, watches: watchesPerResource, threads: threadsPerResource, bytes: bytesPerResource,
  }
  return { operator: { all }, tenant: { all, resource } }
}

function voiceLimitsOf(limits: ServerLimits): VoiceLimits {
  const { voiceSessions = 1_000, voiceSessionsPerPrincipal = 10, voiceMessageBytes = 262_144, voiceIdleMs = 300_000 } = limits
  return {
    sessions: voiceSessions, sessionsPerPrincipal: voiceSessionsPerPrincipal, messageBytes: voiceMessageBytes, idleMs: voiceIdleMs,
    maxMs: limits.voiceMs ?? 3_600_000,
  }
}

/** The ticket of a page, which a browser sends as one of the subprotocols. */
function offeredTicket(request: HttpRequest): string | undefined {
  return offeredProtocols(request).find((name) => name.startsWith(ticketPrefix))?.slice(ticketPrefix.length)
}

/** A limit for each class of routes, so that requests of one class use up nothing of another. */
function classLimits(requests: ServerLimits['requests'], clock: Clock): Map<PrincipalScope, RateLimit> {
  if (requests === false) return new Map()
  return new Map(principalScopes.operator.map((scope) => {
    const perMinute = scope === 'run' || scope === 'send' ? 600 : 6_000
    return [scope, new RateLimit(requests?.[scope] ?? { requests: perMinute }, clock, `limits.requests.${scope}`)]
  }))
}

function checkOptions(options: ServedOptions): void {
  checkNames('The server', options, optionNames)
  const { auth, prefix, requestContext } = options as { [Name in keyof ServedOptions]: unknown }
  if (auth !== undefined && auth !== 'local' && typeof auth !== 'function') {
    throw refused('auth', "'local', apiKeys(), jwt(), or a function that returns a principal")
  }
  if (prefix !== undefined && prefix !== '' && !(typeof prefix === 'string' && /^\/.*[^/]$/.test(prefix))) {
    throw refused('prefix', "a path that begins with '/' and does not end with it")
  }
  if (requestContext !== undefined && typeof requestContext !== 'function') throw refused('requestContext', 'a function')
  checkStudio(options)
  const { limits = {} } = options
  checkNames('limits', limits, ['failedLogins', 'requests', ...numberedLimits])
  if (limits.requests) checkNames('limits.requests', limits.requests, principalScopes.operator)
  for (const name of numberedLimits)
    if (limits[name] !== undefined) checkWhole(`limits.${name}`, limits[name], 1)
  for (const [name, least] of [['maxBodyBytes', 1], ['heartbeatMs', 1], ['stallMs', 1], ['lingerMs', 0]] as const) {
    if (options[name] !== undefined) checkWhole(name, options[name], least)
  }
}

/** Rejects limits of what only a server of `serve()` has: the addresses of its callers, and WebSockets. */
function checkLimitsOfHandler(limits: ServerLimits = {}): void {
  const unlimited = (name: keyof ServerLimits, why: string) =>
    new HeedError('unsupported_option', `createHandler() can't have limits.${name}: ${why}`, { details: { option: `limits.${name}` } })
  if (limits.failedLogins) {
    throw unlimited('failedLogins', 'a Request has no network address. Limit failed logins in the server that calls it, or use serve().')
  }
  const ofSockets = socketLimits.find((name) => limits[name] !== undefined)
  if (ofSockets) throw unlimited(ofSockets, 'it is a limit of WebSockets, which need serve().')
}

function checkStudio({ studio, prefix = '/api' }: Pick<HandlerOptions, 'studio' | 'prefix'>): void {
  if (studio === undefined) return
  if (typeof (Object(studio) as Partial<Studio>).find !== 'function') throw refused('studio', "studio() of 'heed/studio'")
  if (prefix === '' || !(isBelow(studio.path, prefix) || isBelow(prefix, studio.path))) return
  throw refused('studio', `at another path than the routes, ${prefix}`)
}

function approvesAsSender(route: Route, { principal, body }: RequestCall): boolean {
  return scopeOfRequest(route, body) === 'approve' && !hasScope(principal, 'approve')
}

/** Answers requests of any origin: of Node's server, or of the platform. */
export class RequestHandler {
  readonly #heed: Heed
  readonly #events: EventStreams
  readonly #gracePeriod: GracePeriod
  readonly #metrics: Metrics
  readonly #authenticator: Authenticator
  readonly #limit: RateLimit | undefined
  readonly #classLimits: Map<PrincipalScope, RateLimit>
  readonly #quotas: { operator: Quota; tenant: Quota }
  /** Failed logins, by network address. */
  readonly #failedLogins: RateLimit | undefined
  readonly #cors: Cors
  readonly #guard: PolicyGuard | undefined
  readonly #table = new RouteTable<Target>()
  readonly #context: ServerContext
  /** Of requests that a route makes itself. */
  readonly #ownContext: ServerContext
  readonly #errorTexts: ErrorTexts
  readonly #tickets: StreamTickets
  readonly #voices: VoiceSockets
  readonly #studio: StudioRoute | undefined

  constructor(heed: Heed, options: ServedOptions) {
    checkOptions(options)
    const { prefix = '/api', maxBodyBytes = 4 * 1024 * 1024, lingerMs = 30_000 } = options
    const { heartbeatMs = defaults.heartbeatMs, stallMs = defaults.stallMs } = options
    this.#heed = heed
    const { failedLogins = { requests: 60 }, streams = 10_000, streamsPerPrincipal = 500, scheduleMs = 60_000 } = options.limits ?? {}
    const limits = { all: streams, perPrincipal: streamsPerPrincipal }
    this.#events = new EventStreams({ clock: heed.clock, logger: heed.logger, heartbeatMs, stallMs, limits })
    this.#gracePeriod = new GracePeriod(heed.clock, lingerMs)
    this.#metrics = new Metrics(this.#events)
    this.#authenticator = new Authenticator(options.auth, heed)
    this.#limit = options.rateLimit ? new RateLimit(options.rateLimit, heed.clock) : undefined
    this.#classLimits = classLimits(options.limits?.requests, heed.clock)
    this.#quotas = quotasOf(options.limits ?? {})
    this.#failedLogins = failedLogins ? new RateLimit(failedLogins, heed.clock, 'limits.failedLogins') : undefined
    this.#cors = new Cors(options.cors)
    this.#guard = heed.policies && new PolicyGuard(heed.policies, heed.logger)
    const { requestContext } = options
    this.#errorTexts = new ErrorTexts(heed.logger)
    this.#tickets = new StreamTickets(options.ticketSecret, heed.clock)
    this.#voices = new VoiceSockets({
      clock: heed.clock, logger: heed.logger, pingMs: heartbeatMs, lingerMs, limits: voiceLimitsOf(options.limits ?? {}),
    })
    this.#context = {
      voices: this.#voices, maxBodyBytes,
      sendAgain: (call, work) => this.#sendAgain(call, work),
      heed, errorTexts: this.#errorTexts, tickets: this.#tickets,
      events: this.#events, gracePeriod: this.#gracePeriod, runCallers: new RunCallers(), requestContext, scheduleMs, prefix,
      respondAs: (principal, request) => this.#respondAs(principal, new FetchHttpRequest(request)),
    }
    this.#ownContext = { ...this.#context, events: this.#events.uncounted }
    this.#studio = options.studio && new StudioRoute(options.studio, prefix, heed.logger)
    const routes = allRoutes({ metrics: this.#metrics, openApi: () => openApi(routes, prefix) })
    for (const route of routes)
      this.#table.add(route.method, prefix + route.path, { route, reader: new RequestReader(route, maxBodyBytes) })
  }

  async respond(request: HttpRequest): Promise<HttpResponse> {
    if (this.#studio?.owns(request.path)) return this.#respondWithPage(this.#studio, request)
    let response: HttpResponse
    try {
      response = this.#cors.preflight(request) ?? (await this.#dispatch(request))
      this.#cors.addHeaders(request, response)
    } catch (error) {
      // Only a configured function can throw here: the one that decides about origins.
      response = errorResponse(error, this.#heed.logger, { method: request.method, path: request.path })
    }
    Object.assign(response.headers, securityHeaders)
    this.#metrics.count(request.method, response.status)
    return response
  }

  /** A page has a policy of its own, under which it may load its files and call the routes. */
  async #respondWithPage(studio: StudioRoute, request: HttpRequest): Promise<HttpResponse> {
    const response = await studio.respond(request)
    response.headers = { ...securityHeaders, ...response.headers }
    this.#metrics.count(request.method, response.status)
    return response
  }

  close(): void {
    this.#authenticator.close()
    this.#gracePeriod.close()
    this.#events.close()
    this.#voices.close()
  }

  /** Cuts WebSockets whose clients have not answered `close()`. */
  cutSockets(): void {
    this.#voices.cut()
  }

  /** A request that a route makes itself. It was authenticated with the request of the route, and counts as part of it. */
  async #respondAs(principal: Principal, request: HttpRequest): Promise<Response> {
    return toFetchResponse(await this.#dispatch(request, principal), request.method)
  }

  #dispatch(request: HttpRequest, principal?: Principal): Promise<HttpResponse> | HttpResponse {
    const { method, path } = request
    const match = this.#table.find(path)
    const target = match?.targets.get(method === 'HEAD' ? 'GET' : method)
    const absent = target ? undefined : absentRoute(method, path.slice(this.#context.prefix.length))
    if (absent || !match) {
      return errorResponse(absent ?? new HeedError('not_found', `There is no route ${path}.`), this.#heed.logger, { method, path })
    }
    if (target) return this.#handle(target, match.params, request, principal)
    const methods = [...match.targets.keys()]
    const error = new HeedError('method_not_allowed', `The method is not allowed here. Use ${methods.join(' or ')}.`)
    const response = errorResponse(error, this.#heed.logger, { method: '', path })
    response.headers.allow = methods.flatMap((one) => (one === 'GET' ? ['GET', 'HEAD'] : one)).join(', ')
    return response
  }

  async #handle(
    { route, reader }: Target, params: Record<string, string>, request: HttpRequest, known?: Principal,
  ): Promise<HttpResponse> {
    // Until the caller is known, it is none that may read everything. Senders of webhooks get the errors of Heed.
    let texts = route.anonymous ? undefined : this.#errorTexts
    let release: (() => void) | undefined
    let hides = route.read === true
    try {
      if (isSimple(route)) this.#cors.checkOrigin(request)
      const authenticated = known ?? (route.anonymous ? anonymous : this.#authenticate(request, this.#ticketOf(route, params, request)))
      const principal = isPromise(authenticated) ? await authenticated : authenticated
      if (isOperator(principal)) texts = undefined
      hides ||= !route.creates && principal.resources !== '*'
      // Each route without a principal has a limit of its own: requests to one delay no webhook.
      if (!route.unlimited && !known)
        this.#limit?.take(route.anonymous ? `from ${request.remote ?? 'anywhere'} to ${route.path}` : `as ${principal.id}`)
      if (isStreaming(route) && !known) release = this.#events.reserve(principal)
      const call = new RequestCall(known ? this.#ownContext : this.#context, request, principal, params, await reader.read(request))
      call.route = route
      this.#checkRights(route, call, known === undefined)
      checkCounts(route, call)
      checkNamedOnce(route, call)
      if (!call.hasStorage) await call.resolveStorage()
      if (approvesAsSender(route, call)) call.approvable = await checkSenderApproval(route, call)
      if (this.#guard) call.approvable = await this.#guard.check(route, call)
      checkParts(route, call)
      await checkTexts(route, call)
      const handle = () => withRequestSpan(this.#heed.tracing, () => request.header('traceparent'), () => route.handle(call))
      const stores = !route.read && !route.anonymous && route.method !== 'GET'
      const result = await (stores ? withQuota(this.#quotaOf(principal), handle) : handle())
      if (result instanceof Response) return fromFetchResponse(result)
      if (result instanceof Upgrade) return { status: 101, headers: {}, body: null, upgrade: result }
      const response = jsonResponse(200, result ?? null, { 'cache-control': 'no-store' })
      if (texts && typeof response.body === 'string') response.body = texts.showJSON(response.body)
      return response
    } catch (error) {
      const threadId = params.threadId ?? new URLSearchParams(request.search).get('threadId') ?? undefined
      const { method, path } = route
      return errorResponse(hides ? hideForeignThread(error, threadId) : error, this.#loggerFor(error), { method, path }, texts)
    } finally {
      release?.()
    }
  }

  #checkRights(route: Route, { principal, body, agentInPath }: RequestCall, counts: boolean): void {
    const scope = scopeOfRequest(route, body)
    if (scope === undefined) return
    checkScope(principal, scope, agentInPath?.remote?.approvals === 'sender')
    const further = furtherScope(route)
    if (further) checkScope(principal, further, false)
    if (counts && !isOperator(principal)) this.#classLimits.get(scope)?.take(principal.id)
  }

  /** What is sent over a connection that stays open is asked about as a request of its own. */
  async #sendAgain<T>(call: RequestCall, work: () => Promise<T>): Promise<T> {
    const { route, principal } = call
    if (!route) throw new Error('The call has no route.')
    this.#limit?.take(`as ${principal.id}`)
    this.#checkRights(route, call, true)
    if (this.#guard) await this.#guard.check(route, call)
    return withQuota(this.#quotaOf(principal), work)
  }

  #quotaOf(principal: Principal): Quota {
    return isOperator(principal) ? this.#quotas.operator : this.#quotas.tenant
  }

  /** Finds the principal by the ticket, on routes that accept tickets. */
  #ticketOf(
    { ticket }: Route, { agentId = '', threadId = '' }: Record<string, string>, request: HttpRequest,
  ): (() => Principal) | undefined {
    if (ticket === undefined) return undefined
    const given = ticket === 'voice' ? offeredTicket(request)
      : request.search.includes('ticket=') ? (new URLSearchParams(request.search).get('ticket') ?? undefined) : undefined
    return given === undefined ? undefined : () => this.#tickets.verify(given, { agentId, threadId }, ticket)
  }

  /** Where the address of a caller is not known, its failed logins are not counted: they would count against all. */
  #authenticate(request: HttpRequest, ticket?: () => Principal): Principal | Promise<Principal> {
    const { remote } = request
    const authenticate = ticket ?? (() => this.#authenticator.authenticate(request))
    if (remote === undefined || !this.#failedLogins) return authenticate()
    this.#failedLogins.check(remote)
    const failed = (error: unknown): never => {
      if (isHeedError(error) && error.code === 'unauthorized' && !error.retryable) this.#failedLogins?.take(remote)
      throw error
    }
    try {
      const authenticated = authenticate()
      return isPromise(authenticated) ? authenticated.catch(failed) : authenticated
    } catch (error) {
      return failed(error)
    }
  }

  /** The permanent failure of a storage was logged when it was found: the requests and probes that it rejects do not log it again. */
  #loggerFor(error: unknown): Logger {
    const codes = [error, isHeedError(error) ? error.cause : undefined].flatMap((one) => (isHeedError(one) ? one.code : []))
    const isLogged = this.#heed.sites.all().some(({ threads: { lease: { failure } } }) => failure && codes.includes(failure.code))
    return isLogged ? silentLogger : this.#heed.logger
  }
}

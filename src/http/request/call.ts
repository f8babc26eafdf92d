import type { JSONSchema7 } from '@ai-sdk/provider'
import type { Agent } from '../../agent/agent.ts'
import type { ClientOptions } from '../../client/index.ts'
import { HeedError } from '../../base/errors.ts'
import { isDeep, isPlainObject, maxDepth } from '../../base/json.ts'
import type { Heed } from '../../heed/heed.ts'
import { RequestContext } from '../../run/request-context.ts'
import { describeIssues, jsonSchemaValidator } from '../../schema/compile.ts'
import type { Validation } from '../../schema/schema.ts'
import { isOperator, type Principal } from '../auth/principal.ts'
import { isLimited } from '../auth/scopes.ts'
import type { StreamTickets } from '../auth/stream-tickets.ts'
import type { Call, JSONSchema, ObjectSchema, Route } from '../route.ts'
import type { EventStreams, GracePeriod, PrincipalStreams } from '../sse/event-stream.ts'
import type { VoiceSockets } from '../voice/voice-sockets.ts'
import type { WireError } from '../../voice/wire.ts'
import type { RunCallers } from './access.ts'
import type { ErrorTexts } from './error-texts.ts'
import { checkContentType, hasNoBody, parseBody, type HttpRequest } from './exchange.ts'
import { readIdempotencyKey } from './fields.ts'

interface ParsedRequest {
  query: Record<string, unknown>
  body: Record<string, unknown>
  idempotencyKey: string | undefined
}

/** Parses the query and the body of requests to one route, and validates them against its schemas. */
export class RequestReader {
  readonly #maxBodyBytes: number
  readonly #query: RequestSchema | undefined
  readonly #body: RequestSchema | undefined
  readonly #bodyOptional: boolean
  readonly #send: boolean
  /** The names of the query that the route knows, with their schemas. */
  readonly #queryNames: ReadonlyMap<string, JSONSchema> | undefined

  constructor({ query, body, bodyOptional, send, anonymous }: Route, maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
    // Senders of webhooks and probes may add what they need.
    const known = [...Object.entries(query?.properties ?? {}), ...alwaysKnown.map((name) => [name, {}] as const)]
    this.#queryNames = anonymous ? undefined : new Map(known)
    this.#query = query && RequestSchema.of(query, 'query')
    this.#body = body && RequestSchema.of(body, 'body')
    this.#bodyOptional = bodyOptional === true
    this.#send = send === true
  }

  async read(request: HttpRequest): Promise<ParsedRequest> {
    let query: Record<string, unknown> = {}
    if (this.#queryNames && request.search !== '') {
      checkQueryNames(new URLSearchParams(request.search), this.#queryNames)
      // Also on routes that do not use it: what is invalid is rejected alike everywhere.
      contextInQuery(request.search)
    }
    if (this.#query) {
      if (!this.#query.isCompiled) await this.#query.compile()
      if (request.search !== '') query = parseQuery(new URLSearchParams(request.search), this.#query.schema)
      this.#query.validate(query)
    }
    let body: Record<string, unknown> = {}
    if (this.#body && !(this.#bodyOptional && hasNoBody(request))) {
      checkContentType(request)
      body = parseBody(await request.text(this.#maxBodyBytes)) as Record<string, unknown>
      if (!this.#body.isCompiled) await this.#body.compile()
      this.#body.validate(body)
    }
    return { query, body, idempotencyKey: this.#send ? readIdempotencyKey(request) : undefined }
  }
}

type Validator = (value: unknown) => Validation

/** The schema of a query or body, compiled when it is first used. All handlers of a process share it: the routes are constants. */
class RequestSchema {
  static readonly #known = new WeakMap<ObjectSchema, RequestSchema>()

  static of(schema: ObjectSchema, part: 'query' | 'body'): RequestSchema {
    const known = RequestSchema.#known.get(schema) ?? new RequestSchema(schema, part)
    RequestSchema.#known.set(schema, known)
    return known
  }

  readonly schema: ObjectSchema
  readonly #part: 'query' | 'body'
  #compiling: Promise<Validator> | undefined
  #validator: Validator | undefined

  private constructor(schema: ObjectSchema, part: 'query' | 'body') {
    this.schema = schema
    this.#part = part
  }

  get isCompiled(): boolean {
    return this.#validator !== undefined
  }

  async compile(): Promise<void> {
    this.#compiling ??= jsonSchemaValidator(this.schema as JSONSchema7)
    this.#validator = await this.#compiling
  }

  validate(value: unknown): void {
    if (!this.#validator) throw new Error('The schema is not compiled.')
    const validation = this.#validator(value)
    if (validation.ok) return
    // `anyOf` reports an issue for each alternative that does not match; the first few are enough.
    const issues = validation.issues.slice(0, 5)
    throw new HeedError('invalid_argument', `The ${this.#part} is invalid: ${describeIssues(issues)}.`, { details: { issues } })
  }
}

/** Read on every route, or sent by existing clients to every route. */
const alwaysKnown = ['requestContext', 'agentId', 'resourceId', 'ticket']

/**
 * Rejects unknown parameters by name: a filter that is misspelt would otherwise return everything. One that is no list and has two values
 * is rejected too: a proxy may have read the other one.
 */
function checkQueryNames(search: URLSearchParams, known: ReadonlyMap<string, JSONSchema>): void {
  const seen = new Map<string, string>()
  for (const [name, value] of search) {
    if (known.has(name) || isKeyOfObject(name, search, known)) {
      if (!isList(name, known) && (seen.get(name) ?? value) !== value) {
        const message = `The query parameter '${name.slice(0, 64)}' has two values. Pass one of them.`
        throw new HeedError('invalid_argument', message, { details: { field: name } })
      }
      seen.set(name, value)
      continue
    }
    const names = [...known.keys()].filter((one) => one !== 'ticket').join(', ')
    const message = `There is no query parameter '${name.slice(0, 64)}'. Known: ${names}.`
    throw new HeedError('invalid_argument', message, { details: { field: name } })
  }
}

/** Whether the values of a parameter, or of the key of one, are a list. */
function isList(name: string, known: ReadonlyMap<string, JSONSchema>): boolean {
  const [, field = name, key = ''] = /^([^[\]]+)\[([^[\]]+)\]$/.exec(name) ?? []
  const schema = known.get(field)
  const own = key === '' ? schema : (schema?.properties as Record<string, JSONSchema> | undefined)?.[key]
  return own?.type === 'array' && !isJSON(own)
}

/** `name[key]` is read if the parameter is an object, has this key if its keys are listed, and is not there as JSON too. */
function isKeyOfObject(name: string, search: URLSearchParams, known: ReadonlyMap<string, JSONSchema>): boolean {
  const [, field = '', key = ''] = /^([^[\]]+)\[([^[\]]+)\]$/.exec(name) ?? []
  const schema = known.get(field)
  if (schema?.type !== 'object' || search.has(field)) return false
  return schema.properties === undefined || Object.hasOwn(schema.properties as object, key)
}

/**
 * The query as the schema types it: numbers and booleans as such, objects as JSON or as `name[key]=value`, lists of objects as JSON,
 * other lists as repeated or comma-separated values. A value that does not fit its type stays a string, so that validation reports it.
 */
function parseQuery(search: URLSearchParams, schema: ObjectSchema): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    const value = isJSON(property) ? parseObject(search, name, property) : parseValue(search.getAll(name), property)
    if (value !== undefined) query[name] = value
  }
  return query
}

function isJSON({ type, items }: JSONSchema): boolean {
  return type === 'object' || (type === 'array' && (items as JSONSchema | undefined)?.type === 'object')
}

function parseValue(values: readonly string[], property: JSONSchema): unknown {
  if (values.length === 0) return undefined
  if (property.type === 'array') return values.flatMap((value) => value.split(',')).filter((value) => value !== '')
  const [value = ''] = values
  const types: readonly unknown[] = Array.isArray(property.type) ? property.type : [property.type]
  if (types.includes('boolean') && (value === 'true' || value === 'false')) return value === 'true'
  if ((types.includes('integer') || types.includes('number')) && value.trim() !== '' && Number.isFinite(Number(value))) return Number(value)
  return value
}

function parseObject(search: URLSearchParams, name: string, property: JSONSchema): unknown {
  const json = search.get(name)
  if (json !== null) {
    if (isDeep(json)) throw deepParameter(name)
    try {
      return JSON.parse(json) as unknown
    } catch (cause) {
      throw new HeedError('invalid_argument', `The query parameter ${name} is not JSON.`, { cause, details: { field: name } })
    }
  }
  const properties = property.properties as Record<string, JSONSchema> | undefined
  const keys = properties ? Object.keys(properties) : keysOf(search, name)
  const entries = keys.flatMap((key) => {
    const values = search.getAll(`${name}[${key}]`)
    const value = properties ? parseValue(values, properties[key] ?? {}) : parseScalar(values[0])
    return value === undefined ? [] : [[key, value] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** The keys of `name[key]=value`, for an object with any properties. */
function keysOf(search: URLSearchParams, name: string): string[] {
  const keys = [...search.keys()].filter((key) => key.startsWith(`${name}[`) && key.endsWith(']'))
  return [...new Set(keys.map((key) => key.slice(name.length + 1, -1)))]
}

/** A value without a schema: a number, a boolean or null where it is written as one, otherwise a text. `"5"` is a text. */
function parseScalar(value: string | undefined): unknown {
  if (value === undefined || !/^(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|".*")$/s.test(value)) return value
  try {
    return JSON.parse(value) as unknown
  } catch {
    return value
  }
}

function deepParameter(name: string): HeedError {
  const message = `The query parameter ${name} is nested deeper than ${maxDepth} levels.`
  return new HeedError('invalid_argument', message, { details: { field: name } })
}

/**
 * Makes the request context of a run from the principal that starts it. Its result is the whole context: a value of `given`, which is
 * what the caller sent, only counts if the result contains it.
 */
export type ContextOf = (asked: {
  principal: Principal
  request: Request
  given: Readonly<Record<string, unknown>>
}) => Record<string, unknown> | Promise<Record<string, unknown>>

/** What all requests of a server share. */
export interface ServerContext {
  readonly heed: Heed
  readonly events: Pick<EventStreams, 'of'>
  readonly errorTexts: ErrorTexts
  readonly tickets: StreamTickets
  readonly gracePeriod: GracePeriod
  readonly runCallers: RunCallers
  readonly voices: VoiceSockets
  readonly maxBodyBytes: number
  readonly requestContext: ContextOf | undefined
  /** The shortest interval of the schedules that a principal which is no operator creates. */
  readonly scheduleMs: number
  /** The path below which the routes are mounted. */
  readonly prefix: string
  /** Sends for the caller of a request that is being answered for longer, as another request of theirs. */
  sendAgain<T>(call: RequestCall, work: () => Promise<T>): Promise<T>
  /** Answers a request of this process as a principal, without authentication. */
  respondAs(principal: Principal, request: Request): Promise<Response>
}

/** Headers of a request that describe its body or its connection, or identify it. */
const ownHeaders = ['content-type', 'content-length', 'content-encoding', 'transfer-encoding', 'connection', 'idempotency-key']

/** A request as its route receives it. */
export class RequestCall implements Call {
  readonly params: Readonly<Record<string, string>>
  readonly query: Record<string, unknown>
  /** Input processors may change its texts before the route receives it. */
  body: Record<string, unknown>
  readonly principal: Principal
  readonly idempotencyKey: string | undefined
  readonly request: HttpRequest
  approvable: string | undefined
  route: Route | undefined
  readonly #server: ServerContext
  #agent: Agent | undefined

  constructor(
    server: ServerContext,
    request: HttpRequest,
    principal: Principal,
    params: Readonly<Record<string, string>>,
    { query, body, idempotencyKey }: ParsedRequest,
  ) {
    this.#server = server
    this.request = request
    this.principal = principal
    this.params = params
    this.query = query
    this.body = body
    this.idempotencyKey = idempotencyKey
    this.#agent = params.agentId === undefined ? undefined : this.#findAgent(params.agentId)
  }

  get heed(): Heed {
    return this.#server.heed
  }

  get events(): PrincipalStreams {
    const { events, errorTexts } = this.#server
    return events.of(this.principal, isOperator(this.principal) ? undefined : errorTexts.showChunk)
  }

  get scheduleMs(): number {
    return this.#server.scheduleMs
  }

  get tickets(): StreamTickets {
    return this.#server.tickets
  }

  get gracePeriod(): GracePeriod {
    return this.#server.gracePeriod
  }

  get runCallers(): RunCallers {
    return this.#server.runCallers
  }

  get voices(): VoiceSockets {
    return this.#server.voices
  }

  get maxBodyBytes(): number {
    return this.#server.maxBodyBytes
  }

  showError(error: HeedError): WireError {
    const hidden = isOperator(this.principal) ? undefined : this.#server.errorTexts.hide(error)
    if (!hidden) {
      const { code, message, retryable, details } = error
      return { code, message, retryable, ...(details ? { details } : {}) }
    }
    this.heed.logger.error('an error was hidden from its caller', { ...hidden.details, code: error.code, error: error.message })
    return { code: hidden.code, message: hidden.error, retryable: hidden.retryable, details: hidden.details }
  }

  sendAgain<T>(work: () => Promise<T>): Promise<T> {
    return this.#server.sendAgain(this, work)
  }

  get agentInPath(): Agent | undefined {
    return this.#agent
  }

  get agent(): Agent {
    return this.#agent ?? this.#findAgent('')
  }

  readonly ownRequests = (requestContext?: Record<string, unknown>): ClientOptions => {
    const { fetchRequest } = this.request
    const headers = Object.fromEntries(fetchRequest.headers)
    for (const name of ownHeaders) delete headers[name]
    return {
      baseUrl: new URL(fetchRequest.url).origin,
      apiPrefix: this.#server.prefix,
      headers,
      retries: 0,
      fetch: (input, init) => {
        const url = new URL(String(input))
        if (requestContext) url.searchParams.set('requestContext', Buffer.from(JSON.stringify(requestContext)).toString('base64'))
        return this.#server.respondAs(this.principal, new Request(url, init)).then((response) => endedBy(init?.signal, response))
      },
    }
  }

  context(received = contextIn(this.body) ?? contextInQuery(this.request.search)): RequestContext | undefined | Promise<RequestContext> {
    const hook = this.#server.requestContext
    if (hook) return this.#contextOf(hook, received ?? {})
    // What tools and instructions trust must not be the word of any user.
    return received === undefined || isLimited(this.principal) ? undefined : new RequestContext(received)
  }

  /** False if the agent's memory depends on the request: then `resolveStorage()` has to find the storage of its threads first. */
  get hasStorage(): boolean {
    return !this.#agent?.storageDependsOnRequest
  }

  async resolveStorage(): Promise<void> {
    this.#agent = await this.#agent?.forRequest((await this.context()) ?? {})
  }

  async #contextOf(hook: ContextOf, given: Record<string, unknown>): Promise<RequestContext> {
    return new RequestContext(await hook({ principal: this.principal, request: this.request.fetchRequest, given }))
  }

  /** By its id, or by the key under which it is registered. */
  #findAgent(name: string): Agent {
    const agent = this.heed.findAgent(name)
    if (!agent) throw new HeedError('unknown_agent', `There is no agent '${name}'.`, { details: { agentId: name } })
    return agent
  }
}

/** The response as `fetch` gives it: its body is cancelled when the signal of the request is aborted. */
function endedBy(signal: AbortSignal | null | undefined, response: Response): Response {
  if (!signal || !response.body) return response
  return new Response(response.body.pipeThrough(new TransformStream(), { signal }), response)
}

/** The context in a query, which requests without a body have: JSON, in base64 as existing clients write it. */
function contextInQuery(search: string): Record<string, unknown> | undefined {
  const text = search.includes('requestContext=') ? new URLSearchParams(search).get('requestContext') : null
  if (text === null) return undefined
  const json = text.startsWith('{') ? text : Buffer.from(text, 'base64').toString('utf8')
  if (isDeep(json)) throw deepParameter('requestContext')
  let context: unknown
  try {
    context = JSON.parse(json)
  } catch {
    context = undefined
  }
  if (isPlainObject(context)) return context
  const message = 'The query parameter requestContext is not an object. Write it as JSON, in base64.'
  throw new HeedError('invalid_argument', message, { details: { field: 'requestContext' } })
}

/** The context in a body: a field of its own, or part of the options of the run that a send may start. */
function contextIn(body: Record<string, unknown>): Record<string, unknown> | undefined {
  const { requestContext, ifIdle } = body as {
    requestContext?: Record<string, unknown>
    ifIdle?: { streamOptions?: { requestContext?: Record<string, unknown> } }
  }
  return requestContext ?? ifIdle?.streamOptions?.requestContext
}

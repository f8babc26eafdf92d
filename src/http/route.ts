import type { Agent } from '../agent/agent.ts'
import type { ClientOptions } from '../client/index.ts'
import type { Heed } from '../heed/heed.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { Principal } from './auth/principal.ts'
import type { StreamTickets, TicketPurpose } from './auth/stream-tickets.ts'
import type { HeedError } from '../base/errors.ts'
import type { WireError } from '../voice/wire.ts'
import type { RunCallers } from './request/access.ts'
import type { HttpRequest } from './request/exchange.ts'
import type { GracePeriod, PrincipalStreams } from './sse/event-stream.ts'
import type { VoiceSockets } from './voice/voice-sockets.ts'

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** JSON Schema. It validates requests and is part of the OpenAPI document. */
export type JSONSchema = { readonly [keyword: string]: unknown }

export interface ObjectSchema extends JSONSchema {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, JSONSchema>>
  readonly required?: readonly string[]
}

/** One route. Routing, validation and the OpenAPI document are derived from the list of routes. */
export interface Route {
  readonly method: Method
  /** Below the prefix, with `:params`. */
  readonly path: string
  readonly summary: string
  readonly query?: ObjectSchema
  readonly body?: ObjectSchema
  /** A request may have no body at all: existing clients send none. */
  readonly bodyOptional?: true
  /**
   * `events`: a stream of server-sent events. `records`: one of JSON records, each followed by the byte 0x1E, or of server-sent events
   * where the request accepts them. `socket`: a WebSocket, by `call.upgrade`.
   */
  readonly response: 'json' | 'events' | 'records' | 'text' | 'audio' | 'socket'
  /** Its body is a sound, or a form with one: the route reads it itself. */
  readonly upload?: ObjectSchema
  /** The part of a JSON response that clients may rely on. Every route with such a response has one. */
  readonly responseSchema?: JSONSchema
  /** Answers with 204 if there is nothing to answer. */
  readonly mayBeEmpty?: true
  /** Needs no authentication. */
  readonly anonymous?: true
  /** Exempt from the rate limit: monitoring must work whatever the load. */
  readonly unlimited?: true
  /** A send: the same `Idempotency-Key` is the same signal. */
  readonly send?: true
  /** Accepts a ticket instead of other credentials: `stream` in its query, `voice` as a subprotocol. */
  readonly ticket?: TicketPurpose
  /** The texts of its messages enter a run, whose input processors check them; the other texts are checked before it is handled. */
  readonly startsRun?: true
  /** Passes its messages on to other routes, which check their texts. */
  readonly relays?: true
  /** Reads only. */
  readonly read?: true
  /** May create a thread: a taken id is rejected. Other routes answer for a thread of another resource as for a missing one. */
  readonly creates?: true
  readonly handle: (call: Call) => unknown
}

/** One request, validated and typed. */
export interface Call<Body = Record<string, unknown>, Query = Record<string, unknown>> {
  readonly heed: Heed
  /** The agent that the path names. */
  readonly agent: Agent
  readonly params: Readonly<Record<string, string>>
  readonly query: Query
  readonly body: Body
  readonly principal: Principal
  readonly idempotencyKey: string | undefined
  /** The only request for a decision that this call may approve, by the policies; undefined where no policies are configured. */
  readonly approvable: string | undefined
  readonly events: PrincipalStreams
  /** The shortest interval of the schedules that a principal which is no operator creates. */
  readonly scheduleMs: number
  readonly gracePeriod: GracePeriod
  readonly tickets: StreamTickets
  /** Who began the runs without a thread. */
  readonly runCallers: RunCallers
  readonly voices: VoiceSockets
  /** What a caller sees of an error that is not the answer to its request. */
  showError(error: HeedError): WireError
  /** Sends for the caller later than with this request: its rights, limits and the policies are asked again. */
  sendAgain<T>(work: () => Promise<T>): Promise<T>
  /** The largest body. */
  readonly maxBodyBytes: number
  readonly request: HttpRequest
  /** The options of a client whose requests this server answers itself, as the same principal and with this context. */
  readonly ownRequests: (requestContext?: Record<string, unknown>) => ClientOptions
  /**
   * The context of a run that this request starts; `received` defaults to the context in the body, else to that in the query. Without a
   * `requestContext` hook, it is that context, and no promise.
   */
  context(received?: Record<string, unknown>): RequestContext | undefined | Promise<RequestContext>
}

/** Whether a route answers with a stream of chunks. */
export function isStreaming({ response }: Pick<Route, 'response'>): boolean {
  return response === 'events' || response === 'records'
}

/** Whether browsers send a request to it for pages of other origins without asking first: it needs no JSON. */
export function isSimple({ method, body, bodyOptional, upload, response, anonymous }: Route): boolean {
  if (anonymous) return false
  return response === 'socket' || upload !== undefined || (method === 'POST' && (body === undefined || bodyOptional === true))
}

/** Types a route's handler by the values that its schemas accept. */
export function route<Body = Record<string, never>, Query = Record<string, never>>(
  definition: Omit<Route, 'handle'> & { handle: (call: Call<Body, Query>) => unknown },
): Route {
  return definition as unknown as Route
}

/** A node of the tree of paths: its children by segment, its child for any segment, and the targets of its path by method. */
interface Node<Target> {
  children: Map<string, Node<Target>>
  param?: { name: string; node: Node<Target> }
  targets: Map<string, Target>
}

interface RouteMatch<Target> {
  /** By method. */
  targets: ReadonlyMap<string, Target>
  params: Record<string, string>
}

/** Finds the targets of a path. A literal segment is preferred to a `:param`. */
export class RouteTable<Target> {
  readonly #root: Node<Target> = { children: new Map(), targets: new Map() }

  add(method: string, path: string, target: Target): void {
    let node = this.#root
    for (const segment of path.slice(1).split('/')) {
      if (segment.startsWith(':')) {
        const name = segment.slice(1)
        node.param ??= { name, node: { children: new Map(), targets: new Map() } }
        if (node.param.name !== name) throw new Error(`Two names for one parameter of ${path}: ${node.param.name} and ${name}.`)
        node = node.param.node
      } else {
        const child = node.children.get(segment) ?? { children: new Map(), targets: new Map() }
        node.children.set(segment, child)
        node = child
      }
    }
    node.targets.set(method, target)
  }

  find(path: string): RouteMatch<Target> | undefined {
    const params: Record<string, string> = {}
    const node = descend(this.#root, path.slice(1).split('/'), 0, params)
    return node && { targets: node.targets, params }
  }
}

function descend<Target>(
  node: Node<Target>, segments: readonly string[], index: number, params: Record<string, string>,
): Node<Target> | undefined {
  const segment = segments[index]
  if (segment === undefined) return node.targets.size > 0 ? node : undefined
  const child = node.children.get(segment)
  const match = child && descend(child, segments, index + 1, params)
  if (match || !node.param || segment === '') return match
  const below = descend(node.param.node, segments, index + 1, params)
  if (below) params[node.param.name] = decode(segment)
  return below
}

/** Percent-decodes a segment; one that is not valid percent-encoding stays as it is. */
function decode(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** The routes as an OpenAPI document, with the schemas that validate requests. */
export function openApi(routes: readonly Route[], prefix: string): JSONSchema {
  const paths: Record<string, Record<string, JSONSchema>> = {}
  for (const route of routes) {
    const path = prefix + route.path.replaceAll(/:(\w+)/g, '{$1}')
    ;(paths[path] ??= {})[route.method.toLowerCase()] = operation(route)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Heed', version: '1', description: 'Agent threads that listen.' },
    servers: [{ url: '/', description: 'The server that this document is from.' }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: {
        Error: {
          type: 'object',
          properties: { error: { type: 'string' }, code: { type: 'string' }, retryable: { type: 'boolean' }, details: { type: 'object' } },
          required: ['error', 'code', 'retryable'],
        },
      },
    },
  }
}

function operation(route: Route): JSONSchema {
  const { method, path, summary, query, body, bodyOptional, upload, anonymous, send, mayBeEmpty, response } = route
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
    name, in: 'query', required: query?.required?.includes(name) ?? false, ...serialization(schema),
  }))
  return {
    summary,
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^A-Za-z0-9]+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    security: anonymous ? [] : [{ bearer: [] }],
    parameters: [...inPath, ...inQuery, ...(anonymous ? [] : [requestContext]), ...(send ? [idempotencyKey] : [])],
    ...(body ? { requestBody: { required: !bodyOptional, content: { 'application/json': { schema: body } } } } : {}),
    ...(upload ? { requestBody: uploaded(upload) } : {}),
    responses: {
      ...(response === 'socket' ? { 101: { description: summary } } : { 200: { description: summary, content: contentOf(route) } }),
      ...(mayBeEmpty ? { 204: { description: 'There is nothing to answer.' } } : {}),
      default: failure,
    },
  }
}

function uploaded(form: ObjectSchema): JSONSchema {
  return { required: true, content: { 'multipart/form-data': { schema: form }, 'audio/*': { schema: binary } } }
}

function contentOf({ response, responseSchema, method, path }: Route): JSONSchema {
  if (response === 'events') return { 'text/event-stream': { schema: eventStream } }
  if (response === 'records') return { 'text/plain': { schema: recordStream }, 'text/event-stream': { schema: eventStream } }
  if (response === 'text') return { 'text/plain': { schema: { type: 'string' } } }
  // Bytes of no known type are sent as such.
  if (response === 'audio') return { 'audio/*': { schema: binary }, 'application/octet-stream': { schema: binary } }
  if (!responseSchema) throw new Error(`The response of ${method} ${path} has no schema.`)
  return { 'application/json': { schema: responseSchema } }
}

/** How a value is written in a query, in a way that the server reads. */
function serialization(schema: JSONSchema): JSONSchema {
  if (schema.type === 'object') return { style: 'deepObject', explode: true, schema }
  if (schema.type !== 'array') return { schema }
  const isOfObjects = (schema.items as JSONSchema | undefined)?.type === 'object'
  return isOfObjects ? { content: { 'application/json': { schema } } } : { style: 'form', explode: true, schema }
}

const binary = { type: 'string', format: 'binary' }

const eventStream = {
  type: 'string', description: 'Server-sent events: `data: {chunk}` and an empty line for each chunk, then `data: [DONE]`.',
}

const recordStream = { type: 'string', description: 'JSON records, each followed by the byte 0x1E. A client skips empty ones.' }

const requestContext = {
  name: 'requestContext', in: 'query', required: false, schema: { type: 'string' },
  description: 'The request context of requests without a body: a JSON object, in base64.',
}

const idempotencyKey = {
  name: 'Idempotency-Key', in: 'header', required: false, schema: { type: 'string', maxLength: 200 },
  description: 'The same key is the same signal.',
}

const failure = { description: 'The error.', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } }

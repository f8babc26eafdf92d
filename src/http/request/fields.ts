import { defaultRemoteOptions } from '../../agent/config.ts'
import { HeedError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import type { AgentExecutionOptions, WokenRunOptions } from '../../run/options.ts'
import type { RequestContext } from '../../run/request-context.ts'
import { checkScope, isLimited } from '../auth/scopes.ts'
import type { Call } from '../route.ts'
import { acceptOutsideSchema } from '../../schema/outside-schema.ts'
import { runOptions } from '../schema/schemas.ts'
import type { HttpRequest } from './exchange.ts'

/** An object without the properties that are undefined: options are left out, not passed as undefined. */
export function omitUndefined<T extends object>(values: T): { [Key in keyof T]: Exclude<T[Key], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Key in keyof T]: Exclude<T[Key], undefined> }
}

export function parseDate(field: string, value: string): Date {
  const date = new Date(value)
  if (!Number.isNaN(date.getTime())) return date
  throw new HeedError('invalid_argument', `${field} is not a date. Write it as 2026-01-31T12:00:00Z.`, { details: { field } })
}

const details = { field: 'Idempotency-Key' }
const form = /^[\x21-\x7e]{1,200}$/

export function readIdempotencyKey(request: HttpRequest): string | undefined {
  const key = request.header('idempotency-key')
  if (key === null) return undefined
  if (form.test(key)) return key
  throw new HeedError('invalid_argument', 'Idempotency-Key must be 1 to 200 printable characters without spaces.', { details })
}

/** Input with an id is recognized by that id when it is sent again, so a key with another value would contradict it. */
export function checkKeyMatchesId(key: string | undefined, id: string | undefined): void {
  if (key === undefined || id === undefined || key === id) return
  const message = 'The input has an id, which already makes the send idempotent. Leave out the Idempotency-Key, or give it the same value.'
  throw new HeedError('invalid_argument', message, { details })
}

export function keyReused(): HeedError {
  return new HeedError('idempotency_key_reused', 'This Idempotency-Key was used for other input. Use a new key for each send.', { details })
}

type OptionsCall = Pick<Call<unknown, unknown>, 'context' | 'agent' | 'principal'>

/** The options of a run from a request's body, with the request context of its caller. A promise only if the context is one. */
export function readRunOptions(
  call: OptionsCall, body: Record<string, unknown>,
): AgentExecutionOptions | Promise<AgentExecutionOptions> {
  checkRunOptions(call, body)
  const context = call.context(body.requestContext as Record<string, unknown> | undefined)
  const { id } = call.principal
  return context instanceof Promise ? context.then((resolved) => pickRunOptions(body, resolved, id)) : pickRunOptions(body, context, id)
}

/** The options of the run that a send may start: also its id, and what `memory` has besides the thread. */
export function readStreamOptions(
  call: OptionsCall, streamOptions: Record<string, unknown> = {},
): WokenRunOptions | Promise<WokenRunOptions> {
  const options: WokenRunOptions | Promise<WokenRunOptions> = readRunOptions(call, streamOptions)
  const { runId, memory } = streamOptions as Pick<WokenRunOptions, 'runId' | 'memory'>
  if (runId === undefined && memory === undefined) return options
  const own = omitUndefined({ runId, memory })
  return options instanceof Promise ? options.then((resolved) => ({ ...resolved, ...own })) : { ...options, ...own }
}

/** Options that do not need the permission of the agent's author: they change nothing of the agent, or have a scope of their own. */
const unrestricted = new Set(['requestContext', 'agentVersion'])

/** Rejects an option that the agent's author does not let limited principals set, by its name. */
function checkRunOptions({ agent, principal }: OptionsCall, body: Record<string, unknown>): void {
  // A draft is for principals that edit: no other may choose what was not published.
  if (body.agentVersion !== undefined) checkScope(principal, 'edit', false)
  if (!isLimited(principal)) return
  const allowed: readonly string[] = agent.remote?.options ?? defaultRemoteOptions
  for (const name of Object.keys(body)) {
    // Ids of runs are global: an id of another resource must not be answered otherwise than a new one.
    const isOption = name === 'runId' || Object.hasOwn(runOptions, name)
    if (body[name] === undefined || !isOption || unrestricted.has(name)) continue
    if (name === 'modelSettings' && allowed.includes('modelSettings.headers')) continue
    if (name === 'modelSettings' && isPlainObject(body.modelSettings) && body.modelSettings.headers !== undefined) {
      throw optionForbidden('modelSettings.headers')
    }
    if (!allowed.includes(name)) throw optionForbidden(name)
  }
}

function optionForbidden(option: string): HeedError {
  const message = `You may not set '${option}' of a run. The author of the agent can allow it: remote: { options: ['${option}', …] }.`
  return new HeedError('forbidden', message, { details: { option } })
}

/** The roles of messages that users and their programs write. The others are Heed's, or instruct the model. */
const userRoles: readonly unknown[] = ['user', 'assistant', 'tool']

/** Rejects messages of a limited principal that the model would take for instructions. */
export function checkRoles({ principal }: Pick<Call<unknown, unknown>, 'principal'>, messages: unknown): void {
  if (!isLimited(principal)) return
  for (const message of [messages].flat()) {
    if (!isPlainObject(message) || message.role === undefined || userRoles.includes(message.role)) continue
    const why = `You may not send messages of the role '${String(message.role)}'.`
    throw new HeedError('forbidden', why, { details: { field: 'messages.role' } })
  }
}

/** `sender`: the principal whose schemas are in the body. */
function pickRunOptions(
  body: Record<string, unknown>, requestContext: RequestContext | undefined, sender: string,
): AgentExecutionOptions {
  const options: Record<string, unknown> = {}
  for (const name of Object.keys(body)) {
    if (name !== 'requestContext' && Object.hasOwn(runOptions, name) && body[name] !== undefined) options[name] = body[name]
  }
  if (requestContext) options.requestContext = requestContext
  const { structuredOutput } = body as { structuredOutput?: { schema?: unknown } }
  if (structuredOutput?.schema !== undefined) acceptOutsideSchema(structuredOutput.schema, 'structuredOutput.schema', sender)
  if (body.clientTools !== undefined) options.clientTools = readClientTools(body.clientTools as Record<string, unknown>, sender)
  return options
}

/** Tools that the client executes: a description and a schema, without code. */
function readClientTools(tools: Record<string, unknown>, sender: string): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      if (typeof tool !== 'object' || tool === null) {
        const message = `clientTools.${name} must be an object with a description and an inputSchema.`
        throw new HeedError('invalid_tool', message, { details: { tool: name } })
      }
      const { description, inputSchema, parameters } = tool as Record<string, unknown>
      const schema = inputSchema ?? parameters ?? { type: 'object', properties: {} }
      acceptOutsideSchema(schema, `inputSchema of clientTools.${name}`, sender)
      return [name, { ...(typeof description === 'string' ? { description } : {}), inputSchema: schema }]
    }),
  )
}

import { defaultRemoteOptions } from '../../agent/config.ts'
import type { Agent } from '../../agent/agent.ts'
import { HeedError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import { isLimited } from '../auth/scopes.ts'
import type { Route } from '../route.ts'
import type { RequestCall } from './call.ts'

/** Fields of messages and parts that a provider reads: they name items, responses and caches of the account that the server uses. */
const providerFields: ReadonlySet<string> = new Set([
  'providerOptions', 'providerMetadata', 'experimental_providerMetadata', 'callProviderMetadata', 'resultProviderMetadata',
])

/** Fields of files that name one in the account of a provider. */
const referenceFields = ['reference', 'providerReference', 'fileId'] as const

const fileTypes: ReadonlySet<unknown> = new Set([
  'file', 'image', 'reasoning-file', 'media', 'file-data', 'image-data', 'file-url', 'image-url', 'file-id', 'image-file-id',
])

/** Fields with data of the caller, which no provider reads as more than text, and fields with the tools of a caller. */
const data: ReadonlySet<string> = new Set([
  'attributes', 'payload', 'workingMemory', 'value', 'delta', 'args', 'input', 'rawInput', 'resumeData', 'inputData',
  'initialState', 'clientTools', 'structuredOutput',
  'result_schema', 'requestContext', 'modelSettings',
])

/** A URL of this host names a file in the account whose key the request to the provider has. */
const accountHosts: ReadonlySet<string> = new Set(['generativelanguage.googleapis.com'])

/**
 * Keeps limited principals from the account that the server has at a provider: their messages name no items of it unless the authors of the
 * agents that read them allow the option `providerOptions`, and their files are bytes or addresses, not ids. What clients send back of
 * answers that the server gave them loses its provider fields instead: the run does not need them.
 */
export function checkParts(route: Route, call: RequestCall): void {
  const { principal, body } = call
  if (!route.body || route.anonymous || !isLimited(principal)) return
  const readers = call.agentInPath ? [call.agentInPath] : Object.values(call.heed.listAgents())
  const check = new PartCheck(readers.every(allowsProviderOptions))
  const { messages } = body
  if (route.relays) {
    const users = Array.isArray(messages) ? messages.filter((one) => isPlainObject(one) && one.role === 'user') : []
    return check.value(users.at(-1), 'messages')
  }
  for (const [name, value] of Object.entries(body)) {
    if (name === 'messages' && route.startsRun) check.input(value)
    // An option of the run, which is checked with the others.
    else if (!providerFields.has(name)) check.field(name, value, name)
  }
}

function allowsProviderOptions({ remote }: Agent): boolean {
  return (remote?.options ?? defaultRemoteOptions).includes('providerOptions')
}

class PartCheck {
  readonly #allowed: boolean

  constructor(allowed: boolean) {
    this.#allowed = allowed
  }

  /** Messages that enter a run: among them may be answers that the server gave. */
  input(messages: unknown): void {
    for (const message of [messages].flat()) {
      if (!this.#allowed && isPlainObject(message) && message.role === 'assistant') dropProviderFields(message)
      this.value(message, 'messages')
    }
  }

  value(value: unknown, path: string): void {
    if (Array.isArray(value)) for (const item of value) this.value(item, path)
    if (!isPlainObject(value)) return
    if (fileTypes.has(value.type)) checkFile(value, path)
    const isData = typeof value.type === 'string' && value.type.startsWith('data-')
    for (const [name, inner] of Object.entries(value)) {
      if (isData && name === 'data') continue
      // The options of the run that a send may start are checked with those of other runs.
      const isOption = path.endsWith('streamOptions')
      if (providerFields.has(name) && inner !== undefined && !this.#allowed && !isOption) throw fieldForbidden(name, path)
      this.field(name, inner, `${path}.${name}`)
    }
  }

  field(name: string, value: unknown, path: string): void {
    if (name === 'output' || name === 'result' || name === 'modelOutput') {
      // The other forms of output are data.
      if (isPlainObject(value) && value.type === 'content') this.value(value.value, path)
      if (isPlainObject(value) && typeof value.type === 'string' && value.providerOptions !== undefined && !this.#allowed) {
        throw fieldForbidden('providerOptions', path)
      }
    } else if (name === 'experimental_attachments' && Array.isArray(value)) {
      for (const one of value) if (isPlainObject(one)) checkFile(one, path)
    } else if (!data.has(name)) this.value(value, path)
  }
}

function dropProviderFields(value: unknown): void {
  if (Array.isArray(value)) return value.forEach(dropProviderFields)
  if (!isPlainObject(value)) return
  for (const name of Object.keys(value)) {
    if (providerFields.has(name)) delete value[name]
    else if (!data.has(name)) dropProviderFields(value[name])
  }
}

function checkFile(file: Record<string, unknown>, path: string): void {
  for (const name of referenceFields) if (file[name] !== undefined) throw fileForbidden(`${path}.${name}`)
  for (const name of ['data', 'image', 'url'] as const) checkSource(file[name], `${path}.${name}`)
}

function checkSource(source: unknown, path: string): void {
  if (typeof source === 'string' ? isOwn(source) : !isPlainObject(source) || source.type === 'text') return
  if (isPlainObject(source) && source.type === 'data') return checkSource(source.data, path)
  if (isPlainObject(source) && source.type === 'url') return checkSource(source.url, path)
  throw fileForbidden(path)
}

/** Whether these are bytes or an address, not the id of a file. Ids have characters that base64 has not. */
function isOwn(source: string): boolean {
  if (/^data:/i.test(source)) return true
  if (!/^https:/i.test(source)) return !/[^A-Za-z0-9+/=\s]/.test(source)
  // What is no URL is rejected where the message is read.
  return !URL.canParse(source) || !accountHosts.has(new URL(source).hostname)
}

function fieldForbidden(option: string, path: string): HeedError {
  const message = `You may not set '${option}' in ${path}, which the provider reads. Leave it out. The author of the agent can allow it: \
remote: { options: ['providerOptions', …] }.`
  return new HeedError('forbidden', message, { details: { option, field: `${path}.${option}` } })
}

function fileForbidden(field: string): HeedError {
  const message = `You may not send ${field}, which names a file at a provider. Send the bytes as base64, a data: URL or an https: URL.`
  return new HeedError('forbidden', message, { details: { field } })
}

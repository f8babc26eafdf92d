import { isObject, type JSONValue } from '../../base/json.ts'
import { mediaTypeOf, readFileData } from '../file-data.ts'
import type {
  FilePart, MessagePart, ModelToolOutput, ReasoningPart, SourcePart, ToolApprovalRecord, ToolInvocation, ToolInvocationPart,
  ToolInvocationState,
} from '../message.ts'
import { storableOutput } from '../tool-output.ts'
import { asJSON, firstString, isProviderOptions, providerMetadataOf, type Raw } from './raw.ts'

/**
 * A part as it is stored, from any form of callers and older rows: stored parts, parts of a user interface, parts of model messages. An
 * empty list is a part with nothing to store. A string is the reason why the part can't be read.
 */
export function readPart(raw: unknown): MessagePart[] | string {
  if (!isObject(raw)) return `a part is an object with a \`type\`, not ${raw === null ? 'null' : typeof raw}`
  if (typeof raw.type !== 'string') return 'a part needs a `type`'
  const part = partOf(raw, raw.type)
  if (typeof part === 'string') return part
  return part ? [part] : []
}

function partOf(raw: Raw, type: string): MessagePart | undefined | string {
  switch (type) {
    case 'text':
      return typeof raw.text === 'string' ? { type, text: raw.text, ...providerMetadataOf(raw) } : 'a text part needs `text`'
    case 'reasoning':
      return readReasoning(raw)
    case 'redacted-reasoning':
      return { type: 'reasoning', reasoning: '', providerMetadata: { anthropic: { redactedData: asJSON(raw.data) } } }
    case 'file':
      return readFile(raw, raw.data ?? raw.url)
    case 'image':
      return readFile(raw, raw.image ?? raw.data, 'image/*')
    case 'reasoning-file':
      return readFile({ ...raw, reasoning: true }, raw.data ?? raw.url)
    case 'step-start':
      return { type, ...providerMetadataOf(raw) }
    case 'source':
      if (!isSource(raw.source)) return 'a source part needs a `source` of type url or document'
      return { type, source: raw.source, ...providerMetadataOf(raw) }
    case 'source-url':
    case 'source-document':
      return readInterfaceSource(raw, type)
    case 'error':
      return readError(raw)
    case 'custom':
      return isKind(raw.kind) ? { type, kind: raw.kind, ...providerMetadataOf(raw) } : 'a custom part needs a `kind` such as provider.name'
    case 'steering-message':
      return undefined
  }
  if (isDataType(type)) return readData(raw, type)
  return readTool(raw, type)
}

function readTool(raw: Raw, type: string): MessagePart | undefined | string {
  // A tool of a user interface may be named `call` or `result`; only its part has a state.
  if (type === 'dynamic-tool' || (type.startsWith('tool-') && typeof raw.state === 'string')) return readInterfaceCall(raw)
  if (type === 'tool-invocation') return readStoredInvocation(raw)
  if (type === 'tool-call') return readCall(raw)
  if (type === 'tool-result') return readResult(raw)
  if (type === 'tool-approval-request' || type === 'tool-approval-response') return undefined
  return unknownType(type)
}

/** The reason that `readPart` returns for an unknown type, as opposed to a malformed part of a known type. */
export function unknownType(type: unknown): string {
  return `unknown part type ${JSON.stringify(type)}`
}

function readReasoning(raw: Raw): ReasoningPart | string {
  const text = firstString(raw.reasoning, raw.text)
  const options = providerMetadataOf(raw)
  if (!Array.isArray(raw.details)) {
    return text === undefined ? 'a reasoning part needs `text`' : { type: 'reasoning', reasoning: text, ...options }
  }
  const details = raw.details.filter(isObject)
  const texts = details.flatMap(detail => (typeof detail.text === 'string' ? [detail.text] : []))
  const signature = firstString(...details.map(detail => detail.signature))
  const redacted = firstString(...details.map(detail => (detail.type === 'redacted' ? detail.data : undefined)))
  const proof = redacted !== undefined ? { redactedData: redacted } : signature !== undefined ? { signature } : undefined
  return {
    type: 'reasoning',
    reasoning: text || texts.join(''),
    ...(options.providerMetadata ? options : proof && { providerMetadata: { anthropic: proof } }),
  }
}

function readFile(raw: Raw, source: unknown, anyType?: string): FilePart | string {
  const file = readFileData(raw.reference ?? raw.providerReference ?? source)
  if (typeof file === 'string') return file
  const filename = firstString(raw.filename, raw.name)
  const mimeType = firstString(raw.mediaType, raw.mimeType, raw.contentType) ?? mediaTypeOf(file.data) ?? anyType
  if (mimeType === undefined) return 'a file part needs a `mediaType`'
  return {
    type: 'file',
    ...file,
    mimeType,
    ...(filename !== undefined && { filename }),
    ...(raw.reasoning === true && { reasoning: true }),
    ...providerMetadataOf(raw),
  }
}

function readInterfaceSource(raw: Raw, type: 'source-url' | 'source-document'): SourcePart | string {
  const { sourceId: id, url, title, mediaType, filename } = raw
  const named = typeof title === 'string' ? { title } : {}
  if (typeof id !== 'string') return `a ${type} part needs a \`sourceId\``
  if (type === 'source-url') {
    if (typeof url !== 'string') return 'a source-url part needs a `url`'
    return { type: 'source', source: { sourceType: 'url', id, url, ...named }, ...providerMetadataOf(raw) }
  }
  if (typeof mediaType !== 'string') return 'a source-document part needs a `mediaType`'
  const file = typeof filename === 'string' ? { filename } : {}
  return { type: 'source', source: { sourceType: 'document', id, mediaType, title: '', ...named, ...file }, ...providerMetadataOf(raw) }
}

function isSource(source: unknown): source is SourcePart['source'] {
  if (!isObject(source) || typeof source.id !== 'string') return false
  if (source.sourceType === 'url') return typeof source.url === 'string'
  return source.sourceType === 'document' && typeof source.mediaType === 'string' && typeof source.title === 'string'
}

function readError({ error }: Raw): MessagePart | string {
  if (!isObject(error) || typeof error.message !== 'string') return 'an error part needs an `error` with a `message`'
  const { name, message, code } = error
  return { type: 'error', error: { name: firstString(name) ?? 'Error', message, ...(typeof code === 'string' && { code }) } }
}

function readData(raw: Raw, type: `data-${string}`): MessagePart {
  const data: JSONValue = asJSON(raw.data)
  return { type, ...(typeof raw.id === 'string' && { id: raw.id }), data, ...providerMetadataOf(raw) }
}

function isDataType(type: string): type is `data-${string}` {
  return type.startsWith('data-')
}

function isKind(kind: unknown): kind is `${string}.${string}` {
  return typeof kind === 'string' && kind.includes('.')
}

type Invocation = Omit<ToolInvocation, 'toolCallId' | 'toolName' | 'args'>

/** A stored call, also in a state of older writers. Undefined for one whose arguments are incomplete. */
function readStoredInvocation(raw: Raw): ToolInvocationPart | undefined | string {
  const stored = raw.toolInvocation
  if (!isObject(stored)) return 'a tool-invocation part needs `toolInvocation`'
  const names = namesOf(stored, stored.toolName)
  if (typeof names === 'string') return names
  const { toolCallId: _, toolName: __, state, args, isError, ...kept } = stored
  if (state === 'partial-call') return undefined
  const known = invocationState(state, stored)
  const failed = known === 'result' && isError === true
  return {
    type: 'tool-invocation',
    toolInvocation: {
      ...kept,
      ...names,
      args: asJSON(args ?? {}),
      state: failed ? 'output-error' : known,
      ...(failed && { errorText: errorTextOf(stored.errorText ?? stored.result) }),
    },
    ...executedBy(raw),
    ...providerMetadataOf(raw),
    ...(isProviderOptions(raw.resultProviderMetadata) && { resultProviderMetadata: raw.resultProviderMetadata }),
  }
}

/** A call in a model message. */
function readCall(raw: Raw): ToolInvocationPart | string {
  const names = namesOf(raw, raw.toolName)
  if (typeof names === 'string') return names
  const args = asJSON(raw.input ?? raw.args ?? {})
  return { type: 'tool-invocation', toolInvocation: { ...names, args, state: 'call' }, ...executedBy(raw), ...providerMetadataOf(raw) }
}

/** A result in a model message, without the arguments of its call. */
function readResult(raw: Raw): ToolInvocationPart | string {
  const names = namesOf(raw, raw.toolName)
  if (typeof names === 'string') return names
  const outcome = isOutput(raw.output) ? outcomeOf(raw.output) : bareOutcome(raw)
  return { type: 'tool-invocation', toolInvocation: { ...names, args: null, ...outcome }, ...providerMetadataOf(raw) }
}

/** A call of a user interface, `tool-<name>` or `dynamic-tool`. Undefined while its input is still streaming. */
function readInterfaceCall(raw: Raw): ToolInvocationPart | undefined | string {
  const type = firstString(raw.type) ?? ''
  const names = namesOf(raw, type === 'dynamic-tool' ? raw.toolName : type.slice('tool-'.length))
  if (typeof names === 'string') return names
  const invocation = interfaceInvocation(raw)
  if (!invocation) return undefined
  const { callProviderMetadata, resultProviderMetadata } = raw
  return {
    type: 'tool-invocation',
    toolInvocation: { ...names, args: asJSON(raw.input ?? raw.rawInput ?? {}), ...invocation },
    ...executedBy(raw),
    ...(isProviderOptions(callProviderMetadata) && { providerMetadata: callProviderMetadata }),
    ...(isProviderOptions(resultProviderMetadata) && { resultProviderMetadata }),
  }
}

function interfaceInvocation(raw: Raw): Invocation | undefined {
  const approval = isObject(raw.approval) ? { approval: decisionOf(raw.approval) } : {}
  switch (raw.state) {
    case 'input-streaming':
      return undefined
    case 'output-available':
      return { state: 'result', result: asJSON(raw.output), ...approval }
    case 'output-error':
      return { state: 'output-error', errorText: errorTextOf(raw.errorText), ...approval }
    case 'output-denied':
    case 'approval-requested':
      return { state: raw.state, ...approval }
    case 'approval-responded':
      return { state: approval.approval?.approved === false ? 'output-denied' : 'call', ...approval }
    default:
      return { state: 'call' }
  }
}

function invocationState(state: unknown, { approval }: Raw): ToolInvocationState {
  if (state === 'approval-responded') return isObject(approval) && approval.approved === false ? 'output-denied' : 'call'
  return states.find(known => known === state) ?? 'call'
}

const states: readonly ToolInvocationState[] = ['call', 'approval-requested', 'result', 'output-error', 'output-denied']

function decisionOf({ approved, by, reason }: Raw): ToolApprovalRecord {
  return {
    ...(typeof approved === 'boolean' && { approved }),
    ...(typeof by === 'string' && { by }),
    ...(typeof reason === 'string' && { reason }),
  }
}

const outputTypes: readonly string[] = ['text', 'json', 'execution-denied', 'error-text', 'error-json', 'content']

function isOutput(output: unknown): output is ModelToolOutput {
  return isObject(output) && typeof output.type === 'string' && outputTypes.includes(output.type)
}

// `modelOutput` is stored only where a prompt from the outcome alone would differ.
function outcomeOf(output: ModelToolOutput): Invocation {
  const exact = 'providerOptions' in output && output.providerOptions ? { modelOutput: asJSON(output) as ModelToolOutput } : {}
  switch (output.type) {
    case 'text':
      return { state: 'result', result: output.value, ...exact }
    case 'json': {
      const result = asJSON(output.value)
      const asText = typeof result === 'string' ? { modelOutput: { type: output.type, value: result } } : {}
      return { state: 'result', result, ...asText, ...exact }
    }
    case 'error-text':
      return { state: 'output-error', errorText: output.value, ...exact }
    case 'error-json':
      return { state: 'output-error', errorText: errorTextOf(output.value), modelOutput: asJSON(output) as ModelToolOutput }
    case 'execution-denied': {
      const reason = output.reason === undefined ? {} : { reason: output.reason }
      return { state: 'output-denied', approval: { approved: false, ...reason }, ...exact }
    }
    case 'content': {
      const stored = storableOutput(output)
      return { state: 'result', result: asJSON('value' in stored ? stored.value : null), modelOutput: stored }
    }
  }
}

function bareOutcome(raw: Raw): Invocation {
  const result = asJSON(raw.result ?? raw.output)
  return raw.isError === true ? { state: 'output-error', errorText: errorTextOf(result) } : { state: 'result', result }
}

function errorTextOf(error: unknown): string {
  if (typeof error === 'string') return error
  if (isObject(error) && typeof error.message === 'string') return error.message
  return JSON.stringify(asJSON(error))
}

function executedBy({ providerExecuted }: Raw): { providerExecuted?: true } {
  return providerExecuted === true ? { providerExecuted } : {}
}

function namesOf({ toolCallId }: Raw, toolName: unknown): { toolCallId: string; toolName: string } | string {
  if (typeof toolCallId !== 'string' || toolCallId === '') return 'a tool part needs a `toolCallId`'
  if (typeof toolName !== 'string' || toolName === '') return 'a tool part needs a `toolName`'
  return { toolCallId, toolName }
}

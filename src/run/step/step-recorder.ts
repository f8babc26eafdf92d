import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { isObject, type JSONValue } from '../../base/json.ts'
import type { Chunk, ChunkPayloads, FinishReason, RunChunk, Usage } from '../../message/chunk.ts'
import type {
  FilePart, MessagePart, ProviderOptions, ReasoningPart, SourcePart, TextPart, ToolInvocationPart,
} from '../../message/message.ts'
import { finishReasonOf, noUsage, usageOf } from '../model/model-parts.ts'
import { parseInput, type OtherInput } from '../tools/tool-input.ts'

/** A call of the model. `invalid`: why its input can't be used. */
export interface ModelToolCall {
  part: ToolInvocationPart
  invalid?: string
  /** The store has that the call has begun. A call that may wait for a decision begins later, with a commit of its own. */
  begun?: true
  /** That commit, while it is under way. */
  beginning?: Promise<void>
  /** The tool was called here. */
  hasRun?: true
}

/** What was published in place of a chunk: the chunk itself, or what stream processors made of it. */
export type Shown = Chunk | readonly Chunk[]

type PartOf<Type extends LanguageModelV4StreamPart['type']> = Extract<LanguageModelV4StreamPart, { type: Type }>

/** The blocks of text, or of reasoning, by the id of the provider, and their parts in the stored message. */
class Blocks<Part extends TextPart | ReasoningPart> {
  readonly #parts: MessagePart[]
  readonly #newPart: () => Part
  readonly #open = new Map<string, Part>()
  /** Text that a processor held back may arrive after its block has ended. */
  readonly #ended = new Map<string, Part>()

  constructor(parts: MessagePart[], newPart: () => Part) {
    this.#parts = parts
    this.#newPart = newPart
  }

  open(id: string, metadata?: unknown): Part {
    let part = this.#open.get(id)
    if (!part) {
      part = this.#newPart()
      this.#open.set(id, part)
      this.#parts.push(part)
    }
    keepMeta(part, metadata)
    return part
  }

  /** The block of a text that was published: open, ended, or new. */
  find(id: string): Part {
    return this.#open.get(id) ?? this.#ended.get(id) ?? this.open(id)
  }

  close(id: string, metadata?: unknown): void {
    const part = this.#open.get(id)
    if (!part) return
    keepMeta(part, metadata)
    this.#open.delete(id)
    this.#ended.set(id, part)
  }

  /** Closes the open blocks, and returns their ids. */
  closeAll(): string[] {
    const ids = [...this.#open.keys()]
    for (const id of ids) this.close(id)
    return ids
  }
}

/** Converts the parts of one model call into chunks to publish and into the parts of the stored message. */
export class StepRecorder {
  readonly parts: MessagePart[] = []
  readonly calls: ModelToolCall[] = []
  readonly warnings: unknown[] = []
  text = ''
  reasoningText = ''
  finishReason: FinishReason = 'other'
  /** The provider's own word for `finishReason`. */
  rawFinishReason: string | undefined
  finished = false
  usage: Usage = noUsage
  modelId: string | undefined
  providerMetadata: ProviderOptions | undefined
  readonly #runId: string
  readonly #otherInput: (toolName: string) => OtherInput
  readonly #texts = new Blocks<TextPart>(this.parts, () => ({ type: 'text', text: '' }))
  readonly #reasonings = new Blocks<ReasoningPart>(this.parts, () => ({ type: 'reasoning', reasoning: '' }))
  readonly #toolNames = new Map<string, string>()
  /** The id of the newest call under each id of the provider, and of each id that is not the provider's, that one. */
  readonly #newestIds = new Map<string, string>()
  readonly #providerIds = new Map<string, string>()
  /** The ids of complete calls. */
  readonly #called = new Set<string>()
  /** What the model wrote, where stream processors decide what is kept of it. */
  #processed = false
  #modelText = ''
  #modelReasoning = ''

  /** `otherInput`: what a tool accepts besides an object. */
  constructor(runId: string, otherInput: (toolName: string) => OtherInput = () => undefined) {
    this.#runId = runId
    this.#otherInput = otherInput
  }

  /**
   * The part with the id by which its call is known here. Models may give several calls of one step the same id: each call after the first
   * gets an id of its own, and prompts have the provider's.
   */
  identify(part: LanguageModelV4StreamPart): LanguageModelV4StreamPart {
    switch (part.type) {
      case 'tool-input-start': {
        const id = this.#idOf(part.id)
        return id === part.id ? part : { ...part, id }
      }
      case 'tool-input-delta':
      case 'tool-input-end': {
        const id = this.#newestIds.get(part.id) ?? part.id
        return id === part.id ? part : { ...part, id }
      }
      case 'tool-call': {
        const toolCallId = this.#idOf(part.toolCallId)
        this.#called.add(toolCallId)
        return toolCallId === part.toolCallId ? part : { ...part, toolCallId }
      }
      case 'tool-result': {
        const toolCallId = this.#resultOf(part.toolCallId)
        return toolCallId === part.toolCallId ? part : { ...part, toolCallId }
      }
      default:
        return part
    }
  }

  /** The id of the call that the provider begins under this id. */
  #idOf(providerId: string): string {
    const newest = this.#newestIds.get(providerId) ?? providerId
    if (!this.#called.has(newest)) return newest
    let number = 2
    while (this.#called.has(`${providerId}~${number}`)) number++
    const id = `${providerId}~${number}`
    this.#newestIds.set(providerId, id)
    this.#providerIds.set(id, providerId)
    return id
  }

  /** The first call under this id of the provider that has no result. */
  #resultOf(providerId: string): string {
    if (!this.#newestIds.has(providerId)) return providerId
    const open = this.parts.find((part) => {
      if (part.type !== 'tool-invocation' || part.toolInvocation.state !== 'call') return false
      const { toolCallId, providerCallId = toolCallId } = part.toolInvocation
      return providerCallId === providerId
    })
    return open?.type === 'tool-invocation' ? open.toolInvocation.toolCallId : providerId
  }

  /** Takes a part, and returns the chunk to publish. Text is recorded after it was published: see `keep`. */
  take(part: LanguageModelV4StreamPart): Chunk | undefined {
    switch (part.type) {
      case 'text-start':
      case 'text-delta':
      case 'text-end':
        return this.#textBlock(part)
      case 'reasoning-start':
      case 'reasoning-delta':
      case 'reasoning-end':
        return this.#reasoningBlock(part)
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end':
        return this.#toolInput(part)
      case 'tool-call':
        return this.#toolCall(part)
      case 'tool-result':
        return this.#providerResult(part)
      case 'source':
        return this.#source(part)
      case 'file':
      case 'reasoning-file':
        return this.#file(part)
      case 'custom':
        this.parts.push({ type: 'custom', kind: part.kind, ...meta(part) })
        return undefined
      case 'stream-start':
      case 'response-metadata':
      case 'finish':
        return this.#aboutCall(part)
      case 'raw':
        return this.#chunk('raw', part.rawValue)
      case 'ping':
        return undefined
      case 'tool-approval-request':
        throw new HeedError('unsupported_option', 'The provider requests approval for a tool that it executes itself. '
          + 'Turn that off in the options of the tool: Heed supports approvals only for tools that it executes.')
      case 'error':
        throw part.error
    }
  }

  /** Records what was published in place of a chunk: what a processor removed is not stored, and no later prompt has it. */
  keep(recorded: Chunk, shown: Shown): void {
    if (!isList(shown)) return this.#keepText(shown)
    // A processor may publish text later than it received it, so only the sums can be compared.
    this.#processed = true
    if (recorded.type === 'text-delta') this.#modelText += recorded.payload.text
    else if (recorded.type === 'reasoning-delta') this.#modelReasoning += recorded.payload.text
    const original = isAttachment(recorded) ? this.parts.pop() : undefined
    for (const chunk of shown) {
      if (chunk === recorded && original) this.parts.push(original)
      else if (isAttachment(chunk)) this.parts.push(attachmentPart(chunk, original))
      else this.#keepText(chunk)
    }
  }

  #keepText(chunk: Chunk): void {
    if (chunk.type === 'text-delta') {
      this.text += chunk.payload.text
      this.#texts.find(chunk.payload.id).text += chunk.payload.text
    } else if (chunk.type === 'reasoning-delta') {
      this.reasoningText += chunk.payload.text
      this.#reasonings.find(chunk.payload.id).reasoning += chunk.payload.text
    }
  }

  /** Replaces the parts with what an output processor left of them. */
  revise(parts: readonly MessagePart[]): void {
    const { reasoningText } = this
    const before = contentOf(this.parts)
    const calls = new Map<string, ToolInvocationPart>()
    this.text = ''
    this.reasoningText = ''
    for (const part of parts) {
      if (part.type === 'text') this.text += part.text
      else if (part.type === 'reasoning') this.reasoningText += part.reasoning
      else if (part.type === 'tool-invocation') calls.set(part.toolInvocation.toolCallId, part)
    }
    const kept = this.calls.flatMap((call) => {
      const part = calls.get(call.part.toolInvocation.toolCallId)
      return part ? [{ ...call, part }] : []
    })
    this.calls.splice(0, this.calls.length, ...kept)
    this.parts.splice(0, this.parts.length, ...parts)
    if (contentOf(parts) !== before) this.dropItems(this.reasoningText !== reasoningText)
  }

  /** Called at the end of the stream: text that processors changed must not be sent as an item of the provider. */
  dropChangedItems(): void {
    if (this.#processed && (this.#reasoningChanged || this.#modelText !== this.text)) this.dropItems()
  }

  get #reasoningChanged(): boolean {
    return this.#processed && this.#modelReasoning !== this.reasoningText
  }

  /** Removes the provider's item ids: later prompts have the recorded text, not what the provider stored under the ids. */
  dropItems(reasoningChanged = this.#reasoningChanged): void {
    this.parts.splice(0, this.parts.length, ...withoutItems(this.parts, reasoningChanged))
    for (const call of this.calls) call.part = this.parts.find((part) => isCall(part, call.part)) ?? call.part
  }

  /** The end chunks of blocks that are still open when a stream is cut. The caller publishes and keeps them like other chunks. */
  closeOpen(): Chunk[] {
    const ends = [
      ...this.#texts.closeAll().map((id) => this.#chunk('text-end', { id })),
      ...this.#reasonings.closeAll().map((id) => this.#chunk('reasoning-end', { id })),
      ...[...this.#toolNames.keys()].map((toolCallId) => this.#chunk('tool-call-input-streaming-end', { toolCallId })),
    ]
    this.#toolNames.clear()
    return ends
  }

  /** Drops calls that will never have a result, as after an interrupt. Text and reasoning stay. */
  dropOpenCalls(): void {
    this.calls.length = 0
    const kept = this.parts.filter((part) => part.type !== 'tool-invocation' || part.toolInvocation.state !== 'call')
    this.parts.splice(0, this.parts.length, ...kept)
  }

  #chunk<Type extends keyof ChunkPayloads>(type: Type, payload: ChunkPayloads[Type]): RunChunk {
    return { type, runId: this.#runId, from: 'AGENT', payload } as RunChunk
  }

  #textBlock(part: PartOf<'text-start'> | PartOf<'text-delta'> | PartOf<'text-end'>): Chunk {
    const { type, id } = part
    if (type === 'text-end') this.#texts.close(id, part.providerMetadata)
    else this.#texts.open(id, part.providerMetadata)
    if (type !== 'text-delta') return this.#chunk(type, { id, ...meta(part) })
    // The most frequent part: it creates no object that it doesn't need.
    if (part.providerMetadata === undefined) return this.#chunk('text-delta', { id, text: part.delta })
    return this.#chunk('text-delta', { id, text: part.delta, ...meta(part) })
  }

  #reasoningBlock(part: PartOf<'reasoning-start'> | PartOf<'reasoning-delta'> | PartOf<'reasoning-end'>): Chunk {
    const { type, id } = part
    if (type === 'reasoning-end') this.#reasonings.close(id, part.providerMetadata)
    else this.#reasonings.open(id, part.providerMetadata)
    if (type === 'reasoning-delta') return this.#chunk(type, { id, text: part.delta, ...meta(part) })
    return this.#chunk(type, { id, ...meta(part) })
  }

  #toolInput(part: PartOf<'tool-input-start'> | PartOf<'tool-input-delta'> | PartOf<'tool-input-end'>): Chunk {
    switch (part.type) {
      case 'tool-input-start':
        this.#toolNames.set(part.id, part.toolName)
        return this.#chunk('tool-call-input-streaming-start', {
          toolCallId: part.id,
          toolName: part.toolName,
          ...(part.providerExecuted ? { providerExecuted: true } : {}),
          ...(part.dynamic ? { dynamic: true } : {}),
          ...meta(part),
        })
      case 'tool-input-delta':
        return this.#chunk('tool-call-delta', {
          toolCallId: part.id,
          toolName: this.#toolNames.get(part.id),
          argsTextDelta: part.delta,
          ...meta(part),
        })
      case 'tool-input-end':
        this.#toolNames.delete(part.id)
        return this.#chunk('tool-call-input-streaming-end', { toolCallId: part.id, ...meta(part) })
    }
  }

  #toolCall(call: PartOf<'tool-call'>): Chunk {
    const { args, invalid } = parseInput(call.input, () => (call.providerExecuted ? 'any JSON' : this.#otherInput(call.toolName)))
    const providerCallId = this.#providerIds.get(call.toolCallId)
    const given = providerCallId === undefined ? {} : { providerCallId }
    const part: ToolInvocationPart = {
      type: 'tool-invocation',
      toolInvocation: { toolCallId: call.toolCallId, ...given, toolName: call.toolName, args, state: 'call' },
      ...(call.providerExecuted ? { providerExecuted: true } : {}),
      ...meta(call),
    }
    this.parts.push(part)
    if (!call.providerExecuted) this.calls.push(invalid === undefined ? { part } : { part, invalid })
    return this.#chunk('tool-call', {
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      args,
      ...(call.providerExecuted ? { providerExecuted: true } : {}),
      ...(call.dynamic ? { dynamic: true } : {}),
      ...meta(call),
    })
  }

  #providerResult(result: PartOf<'tool-result'>): Chunk {
    const value = result.result as JSONValue
    const isError = result.isError === true || isFailedServerCall(value)
    const call = this.parts.find(
      (part): part is ToolInvocationPart => part.type === 'tool-invocation' && part.toolInvocation.toolCallId === result.toolCallId,
    )
    if (call && !result.preliminary) {
      call.toolInvocation.state = isError ? 'output-error' : 'result'
      if (isError) {
        call.toolInvocation.errorText = typeof value === 'string' ? value : JSON.stringify(value)
        call.toolInvocation.errorCode = 'provider_error'
      } else call.toolInvocation.result = value
      if (result.providerMetadata !== undefined) call.resultProviderMetadata = result.providerMetadata as ProviderOptions
    }
    return this.#chunk('tool-result', {
      toolCallId: result.toolCallId,
      toolName: result.toolName,
      args: call?.toolInvocation.args ?? null,
      result: value,
      providerExecuted: true,
      ...(isError ? { isError: true, errorCode: 'provider_error' } : {}),
      ...(result.preliminary ? { preliminary: true } : {}),
      ...meta(result),
    })
  }

  /** What the provider reports about the model call as a whole. */
  #aboutCall(part: PartOf<'stream-start'> | PartOf<'response-metadata'> | PartOf<'finish'>): Chunk | undefined {
    switch (part.type) {
      case 'stream-start':
        this.warnings.push(...part.warnings)
        return undefined
      case 'response-metadata':
        this.modelId = part.modelId
        return this.#chunk('response-metadata', { id: part.id, modelId: part.modelId, timestamp: part.timestamp?.toISOString() })
      case 'finish':
        this.finished = true
        this.finishReason = finishReasonOf(part.finishReason)
        this.rawFinishReason = part.finishReason?.raw
        this.usage = usageOf(part.usage)
        this.providerMetadata = part.providerMetadata as ProviderOptions | undefined
        return undefined
    }
  }

  #source(part: PartOf<'source'>): Chunk {
    const { type: _, providerMetadata: __, ...source } = part
    this.parts.push({ type: 'source', source, ...meta(part) })
    return this.#chunk('source', part.sourceType === 'url'
      ? { id: part.id, sourceType: 'url', url: part.url, title: part.title, ...meta(part) }
      : { id: part.id, sourceType: 'document', title: part.title, mimeType: part.mediaType, filename: part.filename, ...meta(part) })
  }

  #file(part: PartOf<'file'> | PartOf<'reasoning-file'>): Chunk {
    const data = part.data.type === 'url' ? part.data.url.toString() : base64(part.data.data)
    const reasoning = part.type === 'reasoning-file' ? { reasoning: true } : {}
    this.parts.push({ type: 'file', data, mimeType: part.mediaType, ...reasoning, ...meta(part) })
    return this.#chunk('file', { data, mimeType: part.mediaType, ...meta(part) })
  }
}

/** OpenAI reports the failed call of an MCP server as a result without a mark, with the `error` of the server. */
function isFailedServerCall(result: JSONValue): boolean {
  return isObject(result) && result.type === 'call' && 'serverLabel' in result && (result.error ?? null) !== null
}

/** The part of the contents that a provider may store as items. */
function contentOf(parts: readonly MessagePart[]): string {
  return JSON.stringify(parts.map((part) => {
    if (part.type === 'text') return part.text
    if (part.type === 'reasoning') return [part.reasoning]
    return part.type === 'tool-invocation' ? { id: part.toolInvocation.toolCallId, args: part.toolInvocation.args } : part.type
  }))
}

function isCall(part: MessagePart, { toolInvocation }: ToolInvocationPart): part is ToolInvocationPart {
  return part.type === 'tool-invocation' && part.toolInvocation.toolCallId === toolInvocation.toolCallId
}

function isList(shown: Shown): shown is readonly Chunk[] {
  return Array.isArray(shown)
}

type Attachment = Extract<Chunk, { type: 'file' | 'source' }>

function isAttachment(chunk: Chunk): chunk is Attachment {
  return chunk.type === 'file' || chunk.type === 'source'
}

/** The part of a file or source that a processor returned in place of `original`. */
function attachmentPart({ type, payload }: Attachment, original: MessagePart | undefined): FilePart | SourcePart {
  if (type === 'file') {
    const reasoning = original?.type === 'file' && original.reasoning ? { reasoning: true } : {}
    return { type, data: payload.data, mimeType: payload.mimeType, ...reasoning, ...meta(payload) }
  }
  const { id, sourceType, url = '', title, mimeType = 'application/octet-stream', filename } = payload
  const source: SourcePart['source'] = sourceType === 'url'
    ? { sourceType, id, url, ...(title === undefined ? {} : { title }) }
    : { sourceType, id, mediaType: mimeType, title: title ?? '', ...(filename === undefined ? {} : { filename }) }
  return { type, source, ...meta(payload) }
}

function meta(part: { providerMetadata?: unknown }): { providerMetadata?: ProviderOptions } {
  return part.providerMetadata === undefined ? {} : { providerMetadata: part.providerMetadata as ProviderOptions }
}

/** Providers send their metadata with several parts, such as a signature with the last one. The newest replaces the others. */
function keepMeta(part: { providerMetadata?: ProviderOptions } | undefined, metadata: unknown): void {
  if (part && metadata !== undefined) part.providerMetadata = metadata as ProviderOptions
}

function base64(data: string | Uint8Array): string {
  return typeof data === 'string' ? data : Buffer.from(data).toString('base64')
}

/**
 * The parts of a step that was cut or changed, without the provider's item ids. Some providers store the output of a model as items,
 * and later prompts have the id of an item instead of its text: an id would bring back what was changed, or name an item that was
 * never finished. `reasoningChanged`: a signature over the reasoning is void.
 */
export function withoutItems(parts: readonly MessagePart[], reasoningChanged: boolean): MessagePart[] {
  const hasItems = parts.some((part) =>
    hasItem(part.providerMetadata) || ('resultProviderMetadata' in part && hasItem(part.resultProviderMetadata)))
  return parts.flatMap((part): MessagePart[] => {
    if (part.type === 'text') return [withoutMetadata(part)]
    // Reasoning without its item stays for transcripts only: providers reject reasoning that its output does not follow.
    if (part.type === 'reasoning') return [hasItems || reasoningChanged ? withoutMetadata(part) : part]
    if (part.type !== 'tool-invocation' || !hasItems) return [part]
    // A call that the provider executed can only be sent as its item.
    return part.providerExecuted ? [] : [callWithoutItem(part)]
  })
}

function hasItem(metadata: ProviderOptions | undefined): boolean {
  return metadata !== undefined && Object.values(metadata).some((options) => options?.itemId !== undefined)
}

function withoutMetadata<Part extends TextPart | ReasoningPart>(part: Part): Part {
  if (part.providerMetadata === undefined) return part
  const { providerMetadata: _, ...rest } = part
  return rest as Part
}

function callWithoutItem(part: ToolInvocationPart): ToolInvocationPart {
  if (!hasItem(part.providerMetadata)) return part
  const { providerMetadata = {}, ...rest } = part
  const left = Object.entries(providerMetadata).flatMap(([provider, { itemId: _, ...options }]) =>
    Object.keys(options).length === 0 ? [] : [[provider, options] as const])
  return left.length === 0 ? rest : { ...rest, providerMetadata: Object.fromEntries(left) }
}

import type { Message, MessagePart } from '../../message/message.ts'
import type { Chunk } from '../../message/chunk.ts'
import type { ProcessOutputStreamArgs } from '../processor.ts'


/** Returns the replacement of a text. `part` is its part; absent for the text beside the parts. */
type ChangeText = (text: string, part?: MessagePart) => string

/** The text parts of a message; its plain text where it has no parts. */
export function textsOf({ content }: Message): string[] {
  if (content.parts.length === 0 && content.content) return [content.content]
  return content.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
}

/** The message with changed texts and reasoning: a copy, or the message itself when nothing changed. */
function withTexts(message: Message, change: ChangeText): Message {
  const { content } = message
  let changed = false
  const parts = content.parts.map((part) => {
    const replaced = changedPart(part, change)
    if (replaced !== part) changed = true
    return replaced
  })
  const plain = content.content === undefined ? undefined : change(content.content)
  if (!changed && plain === content.content) return message
  return { ...message, content: { ...content, parts, ...(plain === undefined ? {} : { content: plain }) } }
}

/** The messages with changed texts; undefined when none changed, the result of a hook that changes nothing. */
export function withAllTexts(messages: readonly Message[], change: ChangeText): Message[] | undefined {
  const changed = messages.map((message) => withTexts(message, change))
  return changed.every((message, index) => message === messages[index]) ? undefined : changed
}

function changedPart(part: MessagePart, change: ChangeText): MessagePart {
  if (part.type === 'text') {
    const text = change(part.text, part)
    return text === part.text ? part : { ...part, text }
  }
  if (part.type !== 'reasoning') return part
  const reasoning = change(part.reasoning, part)
  // A provider signs reasoning and rejects text that doesn't match the signature.
  return reasoning === part.reasoning ? part : { type: 'reasoning', reasoning }
}

type DeltaChunk = Extract<Chunk, { type: 'text-delta' | 'reasoning-delta' }>
type EndChunk = Extract<Chunk, { type: 'text-end' | 'reasoning-end' }>

export function isDelta(chunk: Chunk): chunk is DeltaChunk {
  return chunk.type === 'text-delta' || chunk.type === 'reasoning-delta'
}

export function isEnd(chunk: Chunk): chunk is EndChunk {
  return chunk.type === 'text-end' || chunk.type === 'reasoning-end'
}

/** The key of a chunk's block of text. The blocks of a step may be interleaved. */
export function blockKey({ type, payload }: DeltaChunk | EndChunk): string {
  return `${type.slice(0, type.indexOf('-'))} ${payload.id}`
}

/** A chunk with another text; null, which drops it, for an empty one. */
export function withText(chunk: DeltaChunk, text: string): DeltaChunk | null {
  if (text === '') return null
  return text === chunk.payload.text ? chunk : { ...chunk, payload: { ...chunk.payload, text } }
}

/** Emits the held text of a block before the end of the block. */
export function release({ emit }: Pick<ProcessOutputStreamArgs, 'emit'>, end: EndChunk, text: string): Chunk {
  const { runId, from, payload } = end
  const type = end.type === 'text-end' ? 'text-delta' : 'reasoning-delta'
  if (text !== '') emit({ type, runId, from, payload: { id: payload.id, text } })
  return end
}

/** A value of one processor for one run, collected with the run. */
export class PerRun<T> {
  readonly #create: () => T
  readonly #values = new WeakMap<object, T>()

  constructor(create: () => T) {
    this.#create = create
  }

  /** `state`: the object of the run that every hook receives. */
  of(state: object): T {
    let value = this.#values.get(state)
    if (value === undefined) {
      value = this.#create()
      this.#values.set(state, value)
    }
    return value
  }
}

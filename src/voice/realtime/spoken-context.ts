import type { LanguageModelV4Message } from '@ai-sdk/provider'
import type { ClientEvent } from './link.ts'

/** A message of the conversation that the model has. */
type Known =
  | { of: 'prompt'; key: string }
  /** What the model said itself. `cut`: it may have been shortened since, to what the user heard. */
  | { of: 'model'; text: string; calls: readonly string[]; items: readonly string[]; cut: boolean }

/** What to send so that the model has a prompt. `restart`: it has something else, which only a new connection forgets. */
export type ContextChange = { restart: true } | { restart: false; events: ClientEvent[] }

/**
 * What a realtime model has of a prompt. A prompt of Heed only grows: what is new is sent, and what the user spoke is there already, as
 * sound. Where a prompt does not go on from what the model has, since a processor or a caller changed a message, it begins again.
 */
export class SpokenContext {
  #known: Known[] = []
  /** What the user said in this connection and is in no prompt yet. */
  #spoken: string[] = []

  /** The words of a turn whose sound the model has. */
  addSpoken(words: string): void {
    this.#spoken.push(words)
  }

  /** The model has said this. */
  addAnswer(answer: { text: string; calls: readonly string[]; items: readonly string[]; cut: boolean }): void {
    if (answer.text !== '' || answer.calls.length > 0) this.#known.push({ of: 'model', ...answer })
  }

  /** The user heard only a part of an item. */
  cut(itemId: string): void {
    for (const one of this.#known) if (one.of === 'model' && one.items.includes(itemId)) one.cut = true
  }

  /** A new connection has nothing. */
  forget(): void {
    this.#known = []
    this.#spoken = []
  }

  /** Takes a prompt, without its system messages, as what the model will have. */
  take(prompt: readonly LanguageModelV4Message[]): ContextChange {
    const at = this.#known.length === 0 ? undefined : this.#matched(prompt)
    if (this.#known.length > 0 && at === undefined) return { restart: true }
    const events = at === undefined ? this.#begin(prompt) : this.#eventsOf(prompt.slice(at))
    return events ? { restart: false, events } : { restart: true }
  }

  /** How much of the prompt the model has; undefined where it has something else. */
  #matched(prompt: readonly LanguageModelV4Message[]): number | undefined {
    let at = 0
    for (const one of this.#known) {
      const message = prompt[at]
      if (one.of === 'prompt') {
        if (message && keyOf(message) === one.key) at++
        else return undefined
      } else if (message?.role === 'assistant' && isSame(one, message)) at++
      // The user heard nothing of it: it is in no prompt.
      else if (!(one.cut && one.calls.length === 0)) return undefined
    }
    return at
  }

  /** The events for messages that follow on those that the model has; undefined where it can't go on from there. */
  #eventsOf(messages: readonly LanguageModelV4Message[]): ClientEvent[] | undefined {
    const events: ClientEvent[] = []
    for (const message of messages) {
      const own = message.role === 'user' ? this.#userEvents(message) : message.role === 'tool' ? this.#resultEvents(message) : undefined
      if (!own) return undefined
      events.push(...own)
      this.#known.push({ of: 'prompt', key: keyOf(message) })
    }
    // A text that was not spoken, beside sound that is in no prompt: a processor may have changed the words of that sound.
    const hasText = events.some((event) => event.type === 'conversation-item-create' && event.item.type === 'text-message')
    return hasText && this.#spoken.length > 0 ? undefined : events
  }

  /** The first prompt of a connection: what was before the last words of the user is one record. */
  #begin(prompt: readonly LanguageModelV4Message[]): ClientEvent[] | undefined {
    const last = prompt.findLastIndex(({ role }) => role !== 'user') + 1
    const earlier = prompt.slice(0, last)
    const events = earlier.length === 0 ? [] : [textMessage(record(earlier))]
    for (const message of earlier) this.#known.push({ of: 'prompt', key: keyOf(message) })
    const latest = this.#eventsOf(prompt.slice(last))
    return latest && [...events, ...latest]
  }

  #userEvents(message: LanguageModelV4Message): ClientEvent[] | undefined {
    const text = textOf(message)
    const spoken = this.#spoken.indexOf(text)
    if (spoken < 0) return [textMessage(text)]
    // Words before these are in no prompt, so that they were rejected, and the model has their sound.
    if (spoken > 0) return undefined
    this.#spoken.shift()
    return []
  }

  /** Only calls that the model made in this connection can be answered in it. */
  #resultEvents({ content }: Extract<LanguageModelV4Message, { role: 'tool' }>): ClientEvent[] | undefined {
    const events: ClientEvent[] = []
    for (const part of content) {
      if (part.type !== 'tool-result') continue
      if (!this.#known.some((one) => one.of === 'model' && one.calls.includes(part.toolCallId))) return undefined
      const item = { type: 'function-call-output' as const, callId: part.toolCallId, name: part.toolName, output: outputText(part.output) }
      events.push({ type: 'conversation-item-create', item })
    }
    return events
  }
}

function isSame({ text, calls, cut }: Extract<Known, { of: 'model' }>, message: LanguageModelV4Message): boolean {
  const written = textOf(message)
  const sameText = cut ? text.startsWith(written) : text === written
  const made = callsOf(message)
  return sameText && made.length === calls.length && made.every((id, index) => id === calls[index])
}

function textOf({ content }: LanguageModelV4Message): string {
  return typeof content === 'string' ? content : content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function callsOf({ content }: LanguageModelV4Message): string[] {
  return typeof content === 'string' ? [] : content.flatMap((part) => (part.type === 'tool-call' ? part.toolCallId : []))
}

function keyOf({ role, content }: LanguageModelV4Message): string {
  return JSON.stringify([role, content])
}

function textMessage(text: string): ClientEvent {
  return { type: 'conversation-item-create', item: { type: 'text-message', role: 'user', text } }
}

/** A conversation as JSON, so that no text in it can pass for another message. Realtime models have no items for earlier answers. */
function record(messages: readonly LanguageModelV4Message[]): string {
  const lines = messages.flatMap(linesOf).map((line) => JSON.stringify(line))
  const head = 'The conversation before the last words of the user, one message a line. Those of the role assistant are yours.'
  return `${head} Do not read it out.\n${lines.join('\n')}`
}

function linesOf(message: LanguageModelV4Message): object[] {
  const { role, content } = message
  if (typeof content === 'string') return [{ role, text: content }]
  return content.flatMap((part): object[] => {
    switch (part.type) {
      case 'text':
        return [{ role, text: part.text }]
      case 'tool-call':
        return [{ role, tool: part.toolName, input: part.input }]
      case 'tool-result':
        return [{ role, tool: part.toolName, output: outputText(part.output) }]
      case 'file':
        return [{ role, file: part.mediaType }]
      default:
        return []
    }
  })
}

type ToolOutput = Extract<Extract<LanguageModelV4Message, { role: 'tool' }>['content'][number], { type: 'tool-result' }>['output']

function outputText(output: ToolOutput): string {
  switch (output.type) {
    case 'text':
    case 'error-text':
      return output.value
    case 'json':
    case 'error-json':
    case 'content':
      return JSON.stringify(output.value)
    case 'execution-denied':
      return `The call was not allowed${output.reason === undefined ? '' : `: ${output.reason}`}.`
  }
}

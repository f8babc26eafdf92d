import { setTimeout } from 'node:timers/promises'
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { expect } from 'vitest'
import type { Agent, AgentThreadSubscription, Chunk } from '../../src/index.ts'

/** Something that is waited for until it is opened. */
export function gate(): { promise: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { promise, open: resolve }
}

/** Looks again until it is so: at once first, then less and less often, so that a wait leaves the processor to what is waited for. */
export function soon<T>(look: () => T | Promise<T>): ReturnType<typeof expect.poll<T>> {
  const start = performance.now()
  return expect.poll(async () => {
    const pause = Math.min(20, (performance.now() - start) / 5)
    if (pause >= 1) await setTimeout(pause)
    return look()
  }, { interval: 1 })
}

/** Waits until nothing runs on a thread. */
export async function idle(agent: Pick<Agent, 'activeRun'>, thread: { threadId: string; resourceId?: string }): Promise<void> {
  await soon(() => agent.activeRun(thread)).toBeNull()
}

/** The texts of a prompt, one per message: `role: text`. */
export function texts(prompt: LanguageModelV4Prompt): string[] {
  return prompt.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : content.map(partText).join('')}`)
}

function partText(part: object): string {
  if ('text' in part && typeof part.text === 'string') return part.text
  if ('toolName' in part && 'input' in part) return `${String(part.toolName)}(${JSON.stringify(part.input)})`
  if ('output' in part) return `= ${JSON.stringify(part.output)}`
  return '[file]'
}

/** What users said in a prompt, in order. */
export function userTexts(call: Pick<LanguageModelV4CallOptions, 'prompt'> | undefined): string[] {
  return texts(call?.prompt ?? []).filter((text) => text.startsWith('user: ')).map((text) => text.slice('user: '.length))
}

/** Reads until a chunk for which `until` holds, and answers what was read with it. */
export async function readUntil(stream: AsyncIterable<Chunk> | AsyncIterator<Chunk>, until: (chunk: Chunk) => boolean): Promise<Chunk[]> {
  const reader = 'next' in stream ? stream : stream[Symbol.asyncIterator]()
  const chunks: Chunk[] = []
  for (;;) {
    const { done, value } = await reader.next()
    if (done) return chunks
    chunks.push(value)
    if (until(value)) return chunks
  }
}

export function isType(...types: string[]): (chunk: Chunk) => boolean {
  return (chunk) => types.includes(chunk.type)
}

export function types(chunks: readonly Chunk[]): string[] {
  return chunks.map(({ type }) => type)
}

/** Collects everything a subscription says, in the background. */
export function collect(subscription: AgentThreadSubscription): { chunks: Chunk[]; done: Promise<void> } {
  const chunks: Chunk[] = []
  const done = (async () => {
    for await (const chunk of subscription.stream) chunks.push(chunk)
  })()
  return { chunks, done }
}

/** One line for each chunk, adjacent deltas of a block joined, without cursors: what it means for two logs to be the same. */
export function joinedLog(chunks: readonly Chunk[]): string[] {
  const log: Array<{ key: string; text: string }> = []
  for (const { cursor: _, ...chunk } of chunks) {
    if (chunk.type === 'text-delta' || chunk.type === 'reasoning-delta' || chunk.type === 'tool-call-delta') {
      if (!('payload' in chunk)) continue
      const { payload } = chunk
      const key = `${chunk.runId} ${chunk.type} ${'id' in payload ? payload.id : payload.toolCallId}`
      const text = 'text' in payload ? payload.text : payload.argsTextDelta
      const last = log.at(-1)
      if (last?.key === key) last.text += text
      else log.push({ key, text })
    } else log.push({ key: JSON.stringify(chunk), text: '' })
  }
  return log.map(({ key, text }) => `${key} ${text}`)
}

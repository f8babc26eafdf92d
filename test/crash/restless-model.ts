import { createHash } from 'node:crypto'
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Message, LanguageModelV4StreamPart } from '@ai-sdk/provider'
import type { Chance } from '../../src/store/conformance/fixture.ts'
import { steadyNow, type JournalWriter } from './journal.ts'
import type { KillSwitch } from './kill-points.ts'

/** What stands in the text of a signal, so that it can be found in prompts and rows: its thread and its id. */
export function mark(thread: string, id: string): string {
  return `[[${thread}|${id}]]`
}

export function marksIn(text: string): Array<{ thread: string; id: string }> {
  return [...text.matchAll(/\[\[([^|\]]+)\|([^\]]+)\]\]/g)].map(([, thread = '', id = '']) => ({ thread, id }))
}

/** How many tool results may follow what a user said before the model answers in words alone. */
const mostCalls = 3

/**
 * A model whose every moment is drawn. It notes each prompt, and every word it says is the time at which it said it, so that a
 * check can see whether a word came too late.
 */
export class RestlessModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider = 'restless'
  readonly modelId = 'restless'
  readonly supportedUrls = {}
  readonly #chance: Chance
  readonly #journal: JournalWriter
  readonly #kill: KillSwitch
  readonly #toolNames: readonly string[]
  #calls = 0

  /** `toolNames`: the tools that it calls, each as often as it is named. */
  constructor(
    chance: Chance, journal: JournalWriter, kill: KillSwitch, toolNames: readonly string[] = ['look', 'look', 'order', 'order', 'order', 'sign', 'ask'],
  ) {
    this.#chance = chance
    this.#journal = journal
    this.#kill = kill
    this.#toolNames = toolNames
  }

  doGenerate(): never {
    throw new Error('not asked')
  }

  async doStream({ prompt, abortSignal }: LanguageModelV4CallOptions): Promise<{ stream: ReadableStream<LanguageModelV4StreamPart> }> {
    const call = this.#calls++
    const marks = prompt.flatMap(({ role, content }) => (role === 'user' ? marksIn(JSON.stringify(content)) : []))
    const thread = marks[0]?.thread ?? ''
    this.#journal.write({ note: 'asked', thread, prompt: prompt.map(digest), marks: marks.map(({ id }) => id), call })
    let told = false
    const over = () => {
      if (!told) this.#journal.write({ note: 'over', thread, call })
      told = true
    }
    abortSignal?.addEventListener('abort', over, { once: true })
    const words = 1 + this.#chance.below(5)
    const parts = this.#parts(call, words, this.#tools(prompt))
    const kill = this.#kill
    const chance = this.#chance
    let index = 0
    return {
      stream: new ReadableStream<LanguageModelV4StreamPart>({
        async pull(controller) {
          await pause(chance.below(8))
          if (abortSignal?.aborted) return controller.error(abortSignal.reason)
          const part = parts[index++]
          if (part?.type === 'text-delta') controller.enqueue({ ...part, delta: `${steadyNow()} ` })
          else if (part) controller.enqueue(part)
          if (index === 3) kill.at('model:midway')
          if (index < parts.length) return
          over()
          controller.close()
        },
      }, { highWaterMark: 0 }),
    }
  }

  #tools(prompt: readonly LanguageModelV4Message[]): string[] {
    const heard = prompt.findLastIndex(({ role }) => role === 'user')
    const results = prompt.slice(heard + 1).filter(({ role }) => role === 'tool').length
    if (results >= mostCalls || this.#chance.below(2) === 0) return []
    return Array.from({ length: 1 + this.#chance.below(2) }, () => this.#chance.pick(this.#toolNames))
  }

  #parts(call: number, words: number, tools: readonly string[]): LanguageModelV4StreamPart[] {
    return [
      { type: 'stream-start', warnings: [] },
      { type: 'text-start', id: 't' },
      ...Array.from({ length: words }, () => ({ type: 'text-delta', id: 't', delta: '' }) as const),
      { type: 'text-end', id: 't' },
      ...tools.map((toolName, index) => ({ type: 'tool-call', toolCallId: `${process.pid}.${call}.${index}`, toolName, input: '{}' }) as const),
      {
        type: 'finish',
        finishReason: tools.length > 0 ? { unified: 'tool-calls', raw: undefined } : { unified: 'stop', raw: undefined },
        usage: { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } },
      },
    ]
  }
}

function digest(message: LanguageModelV4Message): string {
  return createHash('sha1').update(JSON.stringify(message)).digest('base64url').slice(0, 10)
}

/** Work that takes its time; nothing waits for it to be over by then. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

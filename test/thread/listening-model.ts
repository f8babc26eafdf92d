import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4Message, LanguageModelV4StreamPart } from '@ai-sdk/provider'

/** What a listening model is to say next. */
interface Saying {
  text?: string
  /** Names of tools to call. */
  tools?: string[]
  /** Waited for before each part. */
  pause?(): Promise<void>
  /** Called when the last part is out. */
  said?(): void
}

/** A model that remembers, for each thread, what was new to it in each call. The first system message identifies the thread. */
export class ListeningModel implements LanguageModelV4 {
  readonly specificationVersion = 'v4'
  readonly provider = 'listening'
  readonly modelId = 'listening'
  readonly supportedUrls = {}
  /** Texts that a call had after the last thing the model or a tool said, call by call. */
  readonly heard: string[][] = []
  /** The whole of the last prompt's user texts. */
  last: string[] = []
  open = 0
  mostOpen = 0
  readonly #next: (call: number, heard: string[]) => Saying
  #calls = 0

  constructor(next: (call: number, heard: string[]) => Saying) {
    this.#next = next
  }

  doGenerate(): never {
    throw new Error('not asked')
  }

  async doStream({ prompt, abortSignal }: LanguageModelV4CallOptions): Promise<{ stream: ReadableStream<LanguageModelV4StreamPart> }> {
    const call = this.#calls++
    const answered = prompt.findLastIndex(({ role }) => role === 'assistant' || role === 'tool')
    const heard = prompt.slice(answered + 1).flatMap(userText)
    this.heard.push(heard)
    this.last = prompt.flatMap(userText)
    this.mostOpen = Math.max(this.mostOpen, ++this.open)
    const saying = this.#next(call, heard)
    const parts = partsOf(saying, call)
    let index = 0
    let closed = false
    const close = () => {
      if (closed) return
      closed = true
      this.open--
    }
    return {
      stream: new ReadableStream<LanguageModelV4StreamPart>({
        async pull(controller) {
          await saying.pause?.()
          if (closed) return
          if (abortSignal?.aborted) {
            close()
            return controller.error(abortSignal.reason)
          }
          const part = parts[index++]
          if (part) controller.enqueue(part)
          if (index < parts.length) return
          close()
          controller.close()
          saying.said?.()
        },
        cancel: close,
      }, { highWaterMark: 0 }),
    }
  }
}

function partsOf({ text = '', tools = [] }: Saying, call: number): LanguageModelV4StreamPart[] {
  const words = text.match(/\S+\s*/g) ?? []
  return [
    { type: 'stream-start', warnings: [] },
    ...(words.length === 0 ? [] : [{ type: 'text-start', id: 't' } as const, ...words.map((delta) => ({ type: 'text-delta', id: 't', delta }) as const), { type: 'text-end', id: 't' } as const]),
    ...tools.map((toolName, index) => ({ type: 'tool-call', toolCallId: `call-${call}-${index}`, toolName, input: '{}' }) as const),
    {
      type: 'finish',
      finishReason: tools.length > 0 ? { unified: 'tool-calls', raw: undefined } : { unified: 'stop', raw: undefined },
      usage: { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } },
    },
  ]
}

function userText({ role, content }: LanguageModelV4Message): string[] {
  if (role !== 'user') return []
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
}

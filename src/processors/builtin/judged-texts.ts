import type { Message, MessagePart } from '../../message/message.ts'
import type {
  Processor, ProcessInputArgs, ProcessOutputResultArgs, ProcessOutputStepArgs, ProcessOutputStreamArgs, ProcessorContext,
} from '../processor.ts'
import { blockKey, isDelta, isEnd, PerRun, release, textsOf, withAllTexts } from './texts.ts'

export type JudgedPhase = 'input' | 'output'

export interface JudgedTextsOptions {
  /** The checked texts. For `output` the processor has to be an output processor, for `input` an input processor. */
  phases?: readonly JudgedPhase[]
  /**
   * Holds back each text of the model until it is judged, so that rejected text is never published. Otherwise text streams at once and is
   * judged when it is complete: rejected text is then not stored, but was published. Defaults to false.
   */
  hold?: boolean
  /**
   * Judges the reasoning of the model too, and holds it back together with text. Otherwise reasoning is published and stored without a
   * check: a model may reason about content that its answer avoids. Defaults to false.
   */
  thoughts?: boolean
}

/** Replaces parts of a text, after a verdict. */
export type Rewrite = (text: string) => string

/** A longer text is rejected instead of held in memory. */
const maxHeldText = 1_000_000

/** Has each text of the input or of the output judged once, and reasoning where the options include it. */
export abstract class JudgedTexts<Id extends string> implements Processor<Id> {
  abstract readonly id: Id
  /** Only set where texts are held back: a call for every chunk costs time. */
  readonly processOutputStream?: Processor['processOutputStream']
  readonly #phases: ReadonlySet<JudgedPhase>
  readonly #hold: boolean
  readonly #reasoning: boolean
  readonly #held = new PerRun(() => new Map<string, string>())
  /** The texts that verdicts of a run left: they need no other verdict. */
  readonly #judged = new PerRun(() => new Set<string>())

  constructor(phases: readonly JudgedPhase[], hold: boolean, thoughts = false) {
    this.#phases = new Set(phases)
    this.#hold = hold && this.#phases.has('output')
    this.#reasoning = thoughts
    if (this.#hold) this.processOutputStream = (args) => this.#holdText(args)
  }

  /** Rejects the texts, returns how to rewrite them, or leaves them unchanged. */
  protected abstract judge(texts: readonly string[], context: ProcessorContext, phase: JudgedPhase): Promise<Rewrite | undefined>

  async processInput(args: ProcessInputArgs): Promise<Message[] | undefined> {
    if (!this.#phases.has('input')) return undefined
    const rewrite = await this.judge(args.messages.flatMap((message) => textsOf(message)), args, 'input')
    return rewrite && withAllTexts(args.messages, rewrite)
  }

  /** Judges a step with tool calls, whose text is stored before the tools run. `processOutputResult` judges the last step. */
  async processOutputStep(args: ProcessOutputStepArgs): Promise<Message[] | undefined> {
    return args.toolCalls.length > 0 ? this.processOutputResult(args) : undefined
  }

  async processOutputResult(args: ProcessOutputResultArgs | ProcessOutputStepArgs): Promise<Message[] | undefined> {
    if (!this.#phases.has('output') || this.#hold) return undefined
    const judged = this.#judged.of(args.state)
    const fresh = new Map<MessagePart, string>()
    for (const part of args.messages.flatMap(({ content }) => content.parts)) {
      const text = part.type === 'text' ? part.text : part.type === 'reasoning' && this.#reasoning ? part.reasoning : undefined
      if (text !== undefined && !judged.has(text)) fresh.set(part, text)
    }
    const rewrite = await this.judge([...fresh.values()], args, 'output')
    for (const text of fresh.values()) judged.add(rewrite ? rewrite(text) : text)
    return rewrite && withAllTexts(args.messages, (text, part) => (part && fresh.has(part) ? rewrite(text) : text))
  }

  async #holdText(args: ProcessOutputStreamArgs) {
    const { part, state } = args
    if (part.type === 'raw') return null
    if (!isDelta(part) && !isEnd(part)) return undefined
    if (!this.#reasoning && part.type.startsWith('reasoning')) return undefined
    const blocks = this.#held.of(state)
    const key = blockKey(part)
    const text = blocks.get(key) ?? ''
    if (isDelta(part)) {
      if (text.length + part.payload.text.length > maxHeldText) args.abort(`Rejected by ${this.id}: the text is too long to be held back`)
      blocks.set(key, text + part.payload.text)
      return null
    }
    blocks.delete(key)
    const rewrite = await this.judge([text], args, 'output')
    return release(args, part, rewrite ? rewrite(text) : text)
  }
}

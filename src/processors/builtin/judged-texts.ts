import type { Message, MessagePart } from '../../message/message.ts'
import { blockOf, isDelta, isEnd, OfRun, release } from './held-text.ts'
import type {
  Processor, ProcessInputArgs, ProcessOutputResultArgs, ProcessOutputStepArgs, ProcessOutputStreamArgs, ProcessorContext,
} from '../processor.ts'
import { textsOf, withAllTexts } from './texts.ts'

export type JudgedPhase = 'input' | 'output'

export interface JudgedTextsOptions {
  /** Where to look. For `output` the processor has to be among the output processors, for `input` among the input processors. */
  phases?: readonly JudgedPhase[]
  /**
   * Holds back each text that the model says until it was judged, so that nobody sees what is refused. Otherwise an answer streams
   * at once and is judged when it is whole: what is refused then is not kept, but was seen. Defaults to false.
   */
  hold?: boolean
  /**
   * Judges what the model thinks as well, and holds it back where text is. Otherwise thoughts are shown and kept as they come: a model may well think about what it
   * then doesn't say. Defaults to false.
   */
  thoughts?: boolean
}

/** What a text is to be replaced with, after a verdict that asks for it. */
export type Rewrite = (text: string) => string

/** A text that is longer is refused, rather than kept in memory for a verdict. */
const maxHeldText = 1_000_000

/** Shows every text that enters, or that a model says, to a judge once; what it thinks only where that is asked for. */
export abstract class JudgedTexts<Id extends string> implements Processor<Id> {
  abstract readonly id: Id
  /** Only there where texts are held: to be asked about every chunk costs time. */
  readonly processOutputStream?: Processor['processOutputStream']
  readonly #phases: ReadonlySet<JudgedPhase>
  readonly #hold: boolean
  readonly #thoughts: boolean
  readonly #held = new OfRun(() => new Map<string, string>())
  readonly #seen = new OfRun(() => new WeakSet<MessagePart>())

  constructor(phases: readonly JudgedPhase[], hold: boolean, thoughts = false) {
    this.#phases = new Set(phases)
    this.#hold = hold && this.#phases.has('output')
    this.#thoughts = thoughts
    if (this.#hold) this.processOutputStream = (args) => this.#holdText(args)
  }

  /** Refuses, says how to change the texts, or leaves them as they are. */
  protected abstract judge(texts: readonly string[], context: ProcessorContext, phase: JudgedPhase): Promise<Rewrite | undefined>

  async processInput(args: ProcessInputArgs): Promise<Message[] | undefined> {
    if (!this.#phases.has('input')) return undefined
    const rewrite = await this.judge(args.messages.flatMap((message) => textsOf(message)), args, 'input')
    return rewrite && withAllTexts(args.messages, rewrite)
  }

  /** A step with tools: its words are stored before they run. The last one is judged as the answer. */
  async processOutputStep(args: ProcessOutputStepArgs): Promise<Message[] | undefined> {
    return args.toolCalls.length > 0 ? this.processOutputResult(args) : undefined
  }

  async processOutputResult(args: ProcessOutputResultArgs | ProcessOutputStepArgs): Promise<Message[] | undefined> {
    if (!this.#phases.has('output') || this.#hold) return undefined
    const seen = this.#seen.of(args.state)
    const fresh = new Map<MessagePart, string>()
    for (const part of args.messages.flatMap(({ content }) => content.parts)) {
      const text = part.type === 'text' ? part.text : part.type === 'reasoning' && this.#thoughts ? part.reasoning : undefined
      if (text !== undefined && !seen.has(part)) fresh.set(part, text)
    }
    for (const part of fresh.keys()) seen.add(part)
    const rewrite = await this.judge([...fresh.values()], args, 'output')
    return rewrite && withAllTexts(args.messages, (text, part) => (part && fresh.has(part) ? rewrite(text) : text))
  }

  async #holdText(args: ProcessOutputStreamArgs) {
    const { part, state } = args
    if (part.type === 'raw') return null
    if (!isDelta(part) && !isEnd(part)) return undefined
    if (!this.#thoughts && part.type.startsWith('reasoning')) return undefined
    const blocks = this.#held.of(state)
    const key = blockOf(part)
    const text = blocks.get(key) ?? ''
    if (isDelta(part)) {
      if (text.length + part.payload.text.length > maxHeldText) args.abort(`Refused by ${this.id}: the text is too long to be held back`)
      blocks.set(key, text + part.payload.text)
      return null
    }
    blocks.delete(key)
    const rewrite = await this.judge([text], args, 'output')
    return release(args, part, rewrite ? rewrite(text) : text)
  }
}

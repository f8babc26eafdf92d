import type { Chunk, FinishReason, Usage } from '../run/chunk.ts'
import type { ChunkLog } from '../run/output/chunk-log.ts'
import type { RunResult } from '../run/output/run-result.ts'
import type { FilePart, Message, SourcePart } from '../message/message.ts'
import type { Tripwire } from '../processors/processor.ts'
import type { StepResult, WaitingCall } from '../run/step/step-result.ts'

/** Of an object that is still being written: anything may be missing. */
export type DeepPartial<T> = T extends readonly (infer Item)[] ? DeepPartial<Item>[] : T extends object ? { [Key in keyof T]?: DeepPartial<T[Key]> } : T

/**
 * A run that is under way. It goes on whether or not anybody reads.
 *
 * The streams may be read more than once, each time from the start. The promises settle when the run is over; those of a run that
 * failed reject with its error, which `textStream` and `objectStream` throw after what there was. After an abort they give what there was.
 */
export class AgentStream<Calls, Results, Obj> {
  readonly runId: string
  readonly #log: ChunkLog
  readonly #result: Promise<RunResult<Calls, Results, Obj>>

  constructor(runId: string, log: ChunkLog, result: Promise<RunResult<Calls, Results, Obj>>) {
    this.runId = runId
    this.#log = log
    this.#result = result
    // Whoever reads only the streams sees the error there and must not have to catch it here too.
    result.catch(() => {})
  }

  /** Every chunk. */
  get fullStream(): AsyncIterable<Chunk> {
    return this.#log.read((chunk) => chunk)
  }

  /** The text as it is written. */
  get textStream(): AsyncIterable<string> {
    return this.#log.read((chunk) => (chunk.type === 'text-delta' ? chunk.payload.text : undefined), true)
  }

  /** A structured answer as it grows, not checked yet; the last is the validated value. */
  get objectStream(): AsyncIterable<DeepPartial<Obj>> {
    const objectIn = (chunk: Chunk) => (chunk.type === 'object' || chunk.type === 'object-result' ? (chunk.payload.object as DeepPartial<Obj>) : undefined)
    return this.#log.read(objectIn, true)
  }

  /** Everything at once, when the run is over. Rejects when it failed. */
  get result(): Promise<RunResult<Calls, Results, Obj>> {
    return this.#result
  }

  /** The same, under the name existing programs use. */
  getFullOutput(): Promise<RunResult<Calls, Results, Obj>> {
    return this.#result
  }

  /** Waits for the end without looking at it. Never rejects. */
  async consumeStream(): Promise<void> {
    await this.#result.catch(() => {})
  }

  get text(): Promise<string> {
    return this.#of((result) => result.text)
  }

  get reasoningText(): Promise<string> {
    return this.#of((result) => result.reasoningText)
  }

  get object(): Promise<Obj> {
    return this.#of((result) => result.object)
  }

  get toolCalls(): Promise<Calls[]> {
    return this.#of((result) => result.toolCalls)
  }

  get toolResults(): Promise<Results[]> {
    return this.#of((result) => result.toolResults)
  }

  get files(): Promise<FilePart[]> {
    return this.#of((result) => result.files)
  }

  get sources(): Promise<SourcePart['source'][]> {
    return this.#of((result) => result.sources)
  }

  get usage(): Promise<Usage> {
    return this.#of((result) => result.usage)
  }

  get totalUsage(): Promise<Usage> {
    return this.#of((result) => result.totalUsage)
  }

  get finishReason(): Promise<FinishReason> {
    return this.#of((result) => result.finishReason)
  }

  get steps(): Promise<StepResult[]> {
    return this.#of((result) => result.steps)
  }

  get warnings(): Promise<unknown[]> {
    return this.#of((result) => result.warnings)
  }

  get tripwire(): Promise<Tripwire | undefined> {
    return this.#of((result) => result.tripwire)
  }

  get suspended(): Promise<WaitingCall[]> {
    return this.#of((result) => result.suspended)
  }

  get messages(): Promise<Message[]> {
    return this.#of((result) => result.messages)
  }

  #of<T>(pick: (result: RunResult<Calls, Results, Obj>) => T): Promise<T> {
    const picked = this.#result.then(pick)
    picked.catch(() => {})
    return picked
  }
}

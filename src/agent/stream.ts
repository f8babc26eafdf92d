import type { FilePart, Message, SourcePart } from '../message/message.ts'
import type { Tripwire } from '../processors/processor.ts'
import type { Chunk, FinishReason, Usage } from '../message/chunk.ts'
import type { ChunkLog } from '../run/output/chunk-log.ts'
import type { RunResult } from '../run/output/run-result.ts'
import type { StepResult, ToolCall, ToolResult, WaitingCall } from '../run/step/step-result.ts'
import type { ToolArgs, ToolOutput, ToolsInput } from '../run/tools/tool-set.ts'
import type { InferOutput } from '../schema/schema.ts'

/** An object of which the model has produced a part: any field may be missing. */
export type DeepPartial<T> = T extends readonly (infer Item)[]
  ? DeepPartial<Item>[]
  : T extends object
    ? { [Key in keyof T]?: DeepPartial<T[Key]> }
    : T

/**
 * An active run. It continues whether or not its streams are read.
 *
 * The streams may be read more than once, each time from the start. The promises settle when the run is over. When the run failed, they
 * reject with its error, and `textStream` and `objectStream` throw it after their last value. After an abort they resolve with what was
 * produced.
 */
export class AgentStream<Calls, Results, Obj> {
  readonly runId: string
  readonly #log: ChunkLog
  readonly #result: Promise<RunResult<Calls, Results, Obj>>

  constructor(runId: string, log: ChunkLog, result: Promise<RunResult<Calls, Results, Obj>>) {
    this.runId = runId
    this.#log = log
    this.#result = result
    // A caller that reads only the streams gets the error there.
    result.catch(() => {})
  }

  /** Every chunk. */
  get fullStream(): AsyncIterable<Chunk> {
    return this.#log.read((chunk) => chunk)
  }

  /** The deltas of the text. */
  get textStream(): AsyncIterable<string> {
    return this.#log.read((chunk) => (chunk.type === 'text-delta' ? chunk.payload.text : undefined), true)
  }

  /** A structured answer as it grows, not validated; the last value is the validated one. */
  get objectStream(): AsyncIterable<DeepPartial<Obj>> {
    const objectIn = (chunk: Chunk) =>
      chunk.type === 'object' || chunk.type === 'object-result' ? (chunk.payload.object as DeepPartial<Obj>) : undefined
    return this.#log.read(objectIn, true)
  }

  /** The result of the run. Rejects when the run failed. */
  get result(): Promise<RunResult<Calls, Results, Obj>> {
    return this.#result
  }

  /** The same, under the name existing programs use. */
  getFullOutput(): Promise<RunResult<Calls, Results, Obj>> {
    return this.#result
  }

  /** Waits for the end of the run. Never rejects. */
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

// `infer` keeps an agent of certain tools assignable to one of any tools.
type CallsOf<Tools> = Tools extends infer T ? { [Name in keyof T & string]: ToolCall<Name, ToolArgs<T[Name]>> }[keyof T & string] : never
type ResultsOf<Tools> = Tools extends infer T
  ? { [Name in keyof T & string]: ToolResult<Name, ToolArgs<T[Name]>, ToolOutput<T[Name]>> }[keyof T & string]
  : never
type ObjectFor<S> = [S] extends [never] ? undefined : InferOutput<S>

/** The result of `generate()`, typed by the agent's tools and by the schema of its structured output. */
export type GenerateResult<Tools extends ToolsInput, S> = RunResult<CallsOf<Tools>, ResultsOf<Tools>, ObjectFor<S>>
/** The streams and promises of a run that `stream()` began. */
export type StreamResult<Tools extends ToolsInput, S> = AgentStream<CallsOf<Tools>, ResultsOf<Tools>, ObjectFor<S>>

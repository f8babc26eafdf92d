import { HeedError } from '../errors.ts'
import { toRows, type AgentInput } from '../message/input.ts'
import type { ExplainedPrompt } from '../prompt/explain.ts'
import { ChunkLog } from '../run/chunk-log.ts'
import type { Chunk } from '../run/chunk.ts'
import { runLoop } from '../run/loop.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { RequestContext } from '../run/request-context.ts'
import { Run, type RunSetup } from '../run/run.ts'
import type { RunResult } from '../run/run-result.ts'
import type { ToolCall, ToolResult } from '../run/step-result.ts'
import type { ToolInput, ToolOutput, ToolsInput } from '../run/tool-set.ts'
import type { InferOutput, Schema } from '../schema/schema.ts'
import type { Window } from '../store/contract.ts'
import type { Runnable, RunEnvironment, RunRequest } from '../thread/runnable.ts'
import { checkConfig } from './check-config.ts'
import type { AgentConfig } from './config.ts'
import { EphemeralHost } from './ephemeral.ts'
import { explainAgentPrompt } from './explain.ts'
import { prepareRun, resolve, resolveOptions } from './prepare.ts'
import { AgentStream } from './stream.ts'
import { environmentOf } from './environment.ts'

type CallsOf<Tools> = { [Name in keyof Tools & string]: ToolCall<Name, ToolInput<Tools[Name]>> }[keyof Tools & string]
type ResultsOf<Tools> = {
  [Name in keyof Tools & string]: ToolResult<Name, ToolInput<Tools[Name]>, ToolOutput<Tools[Name]>>
}[keyof Tools & string]
type ObjectFor<S> = [S] extends [never] ? undefined : InferOutput<S>

/** What `generate()` answers, typed by the agent's tools and by the schema that was asked for. */
export type GenerateResult<Tools extends ToolsInput, S> = RunResult<CallsOf<Tools>, ResultsOf<Tools>, ObjectFor<S>>
export type StreamResult<Tools extends ToolsInput, S> = AgentStream<CallsOf<Tools>, ResultsOf<Tools>, ObjectFor<S>>

/** A model with instructions and tools, that can be asked once or live on threads. */
export class Agent<TAgentId extends string = string, TTools extends ToolsInput = ToolsInput> implements Runnable {
  readonly description: string | undefined
  readonly #config: AgentConfig<TAgentId, TTools>
  #id: string | undefined
  #environment: RunEnvironment | undefined

  constructor(config: AgentConfig<TAgentId, TTools>) {
    checkConfig(config as AgentConfig)
    this.#config = config
    this.#id = config.id ?? config.name
    this.description = config.description
  }

  get id(): TAgentId {
    if (this.#id === undefined) throw new HeedError('invalid_agent', "This agent has no id. Give it one, or a name, or register it: new Heed({ agents: { support: agent } }).")
    return this.#id as TAgentId
  }

  get name(): string {
    return this.#config.name ?? this.id
  }

  /** Asks once and waits for the whole answer. Rejects when the run failed or was aborted; a tripwire is part of the result. */
  async generate<S extends Schema = never>(messages: AgentInput, options: AgentExecutionOptions<S> = {}): Promise<GenerateResult<TTools, S>> {
    const run = await this.#start(messages, options as AgentExecutionOptions, callbackOf(options.onChunk))
    const result = await runLoop(run)
    if (result.error) throw result.error
    if (result.finishReason === 'aborted') throw new HeedError('aborted', `The run ${run.id} was aborted.`, { cause: run.signal.reason })
    return result as GenerateResult<TTools, S>
  }

  /** Asks once and answers as soon as the run begins. */
  async stream<S extends Schema = never>(messages: AgentInput, options: AgentExecutionOptions<S> = {}): Promise<StreamResult<TTools, S>> {
    const log = new ChunkLog()
    const onChunk = callbackOf(options.onChunk)
    const run = await this.#start(messages, options as AgentExecutionOptions, (chunk) => {
      log.push(chunk)
      onChunk(chunk)
    })
    const result = runLoop(run).finally(() => log.end()).then((finished) => {
      if (finished.error) throw finished.error
      return finished
    })
    return new AgentStream(run.id, log, result) as StreamResult<TTools, S>
  }

  /** An older name of `generate`. */
  generateLegacy(messages: AgentInput, options: AgentExecutionOptions = {}): Promise<GenerateResult<TTools, never>> {
    return this.generate(messages, options as AgentExecutionOptions<never>)
  }

  /** An older name of `stream`. */
  streamLegacy(messages: AgentInput, options: AgentExecutionOptions = {}): Promise<StreamResult<TTools, never>> {
    return this.stream(messages, options as AgentExecutionOptions<never>)
  }

  /** What the model would be sent for these messages, part by part: where each came from and what it costs. */
  explainPrompt(messages: AgentInput, options: AgentExecutionOptions = {}): Promise<ExplainedPrompt> {
    return explainAgentPrompt(this.#config as AgentConfig, this.id, messages, options)
  }

  async getMetadata(requestContext: RequestContext = new RequestContext()): Promise<Record<string, unknown>> {
    return this.#config.metadata === undefined ? {} : resolve(this.#config.metadata, { requestContext })
  }

  async prepare(options: AgentExecutionOptions, request: RunRequest, environment: RunEnvironment): Promise<RunSetup> {
    return prepareRun(this.#config as AgentConfig, { id: this.id, name: this.name }, await resolveOptions(this.#config as AgentConfig, options), request, environment)
  }

  window(_options: AgentExecutionOptions): Window {
    return { low: 10, high: 20 }
  }

  /** @internal */
  adopt(key: string): void {
    this.#id ??= key
  }

  async #start(messages: AgentInput, options: AgentExecutionOptions, emit: (chunk: Chunk) => void): Promise<Run> {
    const environment = (this.#environment ??= environmentOf(this.#config as AgentConfig))
    const rows = toRows(messages, { newId: environment.newId, now: () => new Date(environment.clock.now()) })
    const setup = await this.prepare(options, { runId: options.runId ?? environment.newId(), rows, inputCount: rows.length, stepsDone: 0 }, environment)
    const run = new Run(setup, new EphemeralHost(emit))
    linkAbort(run, setup.options.abortSignal)
    return run
  }
}

function linkAbort(run: Run, signal: AbortSignal | undefined): void {
  if (!signal) return
  if (signal.aborted) run.abort(signal.reason)
  else signal.addEventListener('abort', () => run.abort(signal.reason), { once: true })
}

function callbackOf(onChunk: AgentExecutionOptions['onChunk']): (chunk: Chunk) => void {
  if (!onChunk) return () => {}
  return (chunk) => void onChunk(chunk)
}

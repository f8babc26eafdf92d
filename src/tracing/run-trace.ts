import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { isHeedError } from '../base/errors.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import type { LanguageModel } from '../run/model/model.ts'
import type { RunResult } from '../run/output/run-result.ts'
import { ChatTrace, usageAttributes } from './chat-trace.ts'
import { written } from './content.ts'
import type { Attributes, Context } from './open-telemetry.ts'
import { Operation } from './operation.ts'
import type { TracingOptions } from './options.ts'
import { telemetry, type Telemetry } from './telemetry.ts'
import { linksOf } from './traceparent.ts'

/** What a run is, before it began. */
export interface RunBegin {
  agent: { id: string; name: string }
  runId: string
  threadId?: string
  resourceId?: string
  /** Where it was asked for; without, it stands alone and links to what woke it. */
  parent?: Context | undefined
  /** What it took to begin with. */
  taken?: readonly MessageRow[]
  /** It had begun before: here for how many times, and whether its process was lost or it waited. */
  resumed?: { attempt: number }
}

/** The trace of one run, or of the part of it that this process does. */
export class RunTrace {
  readonly #telemetry: Telemetry
  readonly #options: TracingOptions
  readonly #operation: Operation
  readonly #about: Attributes
  readonly #conversation: string | undefined
  /** Calls that have a span. */
  readonly #executed = new Set<string>()

  constructor(found: Telemetry, options: TracingOptions, { agent, runId, threadId, resourceId, parent, taken = [], resumed }: RunBegin) {
    this.#telemetry = found
    this.#options = options
    this.#conversation = threadId
    this.#about = { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.id': agent.id, 'gen_ai.agent.name': agent.name }
    this.#operation = new Operation(found, {
      name: `invoke_agent ${agent.name}`,
      parent,
      options,
      links: linksOf(taken),
      attributes: { ...this.#about, 'gen_ai.conversation.id': threadId, 'heed.resource.id': resourceId, 'heed.run.id': runId, 'heed.run.resumed': resumed ? true : undefined },
    })
    if (resumed && resumed.attempt > 1) this.#operation.event('heed.takeover', { 'heed.run.attempt': resumed.attempt })
    if (taken.length > 0) this.drained(taken.length, taken, 0)
  }

  /** Where what others do for this run belongs. */
  get context(): Context {
    return this.#operation.context
  }

  within<T>(work: () => T): T {
    return this.#operation.within(work)
  }

  chat(model: LanguageModel, call: LanguageModelV4CallOptions, step: number): ChatTrace {
    return new ChatTrace(model, call, { telemetry: this.#telemetry, options: this.#options, parent: this.#operation.context, conversation: this.#conversation, step })
  }

  /** A call of a tool, from its start to what it returned. What the tool does is below it. */
  async tool<T extends { status: string; json?: unknown }>(about: { description?: string | undefined; invocation: ToolInvocation }, work: () => Promise<T>): Promise<T> {
    const operation = this.#toolOperation(about)
    const measured = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': about.invocation.toolName }
    try {
      const outcome = await operation.within(work)
      operation.set({ 'heed.tool.outcome': outcome.status === 'waiting' ? 'suspended' : 'returned', ...(this.#options.recordOutputs ? { 'gen_ai.tool.call.result': written(outcome.json) } : {}) })
      if (saysError(outcome.json)) operation.fail(written(outcome.json), 'tool_error')
      return outcome
    } catch (error) {
      failOrAbort(operation, error, 'heed.tool.outcome')
      throw error
    } finally {
      operation.end(this.#telemetry.toolDuration, measured)
    }
  }

  /** A call that came to nothing: recorded where its tool was not even started. */
  refused(invocation: ToolInvocation, error: unknown): void {
    if (this.#executed.has(invocation.toolCallId)) return
    const operation = this.#toolOperation({ invocation })
    operation.fail(error)
    operation.end()
  }

  #toolOperation({ description, invocation: { toolCallId, toolName, args } }: { description?: string | undefined; invocation: ToolInvocation }): Operation {
    this.#executed.add(toolCallId)
    return new Operation(this.#telemetry, {
      name: `execute_tool ${toolName}`,
      parent: this.#operation.context,
      options: this.#options,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': toolName,
        'gen_ai.tool.call.id': toolCallId,
        'gen_ai.tool.type': 'function',
        'gen_ai.tool.description': description,
        'gen_ai.conversation.id': this.#conversation,
        ...(this.#options.recordInputs ? { 'gen_ai.tool.call.arguments': written(args) } : {}),
      },
    })
  }

  /** A search for what was said earlier. `about` says what it came to. */
  async search<T>(query: string, topK: number, work: () => Promise<T>, about: (answer: T) => Attributes): Promise<T> {
    const operation = new Operation(this.#telemetry, {
      name: 'search_memory',
      parent: this.#operation.context,
      options: this.#options,
      attributes: {
        'gen_ai.operation.name': 'search_memory',
        'gen_ai.conversation.id': this.#conversation,
        'gen_ai.request.top_k': topK,
        ...(this.#options.recordInputs ? { 'gen_ai.retrieval.query.text': written(query) } : {}),
      },
    })
    try {
      const answer = await operation.within(work)
      operation.set({ ...about(answer), 'heed.recall.duration_ms': operation.elapsed * 1_000 })
      return answer
    } catch (error) {
      operation.fail(error)
      throw error
    } finally {
      operation.end()
    }
  }

  /** Input was asked for at a boundary, and this much entered. */
  drained(count: number, rows: readonly MessageRow[], step: number): void {
    this.#telemetry.mailboxDepth?.record(count, { 'gen_ai.agent.id': this.#about['gen_ai.agent.id'] })
    if (count === 0) return
    this.#operation.event('heed.drain', { 'heed.drain.count': count, 'heed.step': step, 'heed.signal.ids': rows.map(({ id }) => id) })
    if (step > 0) this.#operation.link(linksOf(rows))
  }

  /** The run itself told a lane something. */
  lane(id: string, mode: 'snapshot' | 'delta', step: number): void {
    this.#operation.event('heed.lane', { 'heed.lane.id': id, 'heed.lane.mode': mode, 'heed.step': step })
  }

  end({ usage, finishReason, steps, error, suspended, tripwire }: RunResult): void {
    this.#operation.set({
      ...usageAttributes(usage),
      'gen_ai.response.finish_reasons': [finishReason],
      'heed.run.steps': steps.length,
      ...(suspended.length > 0 ? { 'heed.run.waiting': suspended.map(({ toolName }) => toolName) } : {}),
      'heed.run.refused_by': tripwire?.processorId,
    })
    if (error) this.#operation.fail(error)
    this.#operation.end(this.#telemetry.agentDuration, this.#about)
  }

  /** It goes on elsewhere, or could not even begin. */
  lost(error: unknown): void {
    failOrAbort(this.#operation, error, 'heed.run.outcome')
    this.#operation.end(this.#telemetry.agentDuration, this.#about)
  }
}

/** Tools of MCP answer with what went wrong. */
function saysError(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'isError' in result && result.isError === true
}

/** An abort is what somebody wanted: no error, but not a result either. */
function failOrAbort(operation: Operation, error: unknown, outcome: string): void {
  const aborted = (isHeedError(error) && error.code === 'aborted') || (error instanceof Error && error.name === 'AbortError')
  if (!aborted) return operation.fail(error)
  operation.set({ [outcome]: 'aborted' })
}

/** The trace of a run that begins now; nothing unless an SDK is registered. */
export function traceRun(options: TracingOptions | false | undefined, about: () => RunBegin): RunTrace | undefined {
  const found = options === false ? undefined : telemetry()
  return found && new RunTrace(found, options || {}, about())
}

/** Does the work of a run below its span, and ends the span with what it comes to. */
export function traced(trace: RunTrace | undefined, work: () => Promise<RunResult>): Promise<RunResult> {
  return trace ? ended(trace, work) : work()
}

async function ended(trace: RunTrace, work: () => Promise<RunResult>): Promise<RunResult> {
  const result = await unlessLost(trace, work)
  trace.end(result)
  return result
}

/** Does something for a run before it can begin. When that fails, so has the run. */
export async function unlessLost<T>(trace: RunTrace | undefined, work: () => Promise<T>): Promise<T> {
  if (!trace) return work()
  try {
    return await trace.within(work)
  } catch (error) {
    trace.lost(error)
    throw error
  }
}

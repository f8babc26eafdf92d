import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { isHeedError } from '../base/errors.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { MessageRow } from '../message/row.ts'
import type { LanguageModel } from '../run/model/model.ts'
import type { RunResult } from '../run/output/run-result.ts'
import { ChatTrace, redactedJSON, usageAttributes } from './chat-trace.ts'
import { telemetryFor, type Attributes, type Context, type Telemetry } from './telemetry.ts'
import { Operation } from './operation.ts'
import type { TracingOptions } from './options.ts'
import { linksOf } from './traceparent.ts'

/** The attributes of a run span. */
interface RunStart {
  agent: { id: string; name: string }
  /** The run is one of a workflow, whose id is the name. */
  isWorkflow?: boolean
  runId: string
  threadId?: string
  resourceId?: string
  /** The context of the caller. Without one, the span is a root that links to the sends of the drained signals. */
  parent?: Context | undefined
  /** The rows that the run drained at its start. */
  drained?: readonly MessageRow[]
  /** Set for a run that continues: after a suspension, or in attempt `attempt` after a takeover. */
  resumed?: { attempt: number }
}

/** The span of one run, or of the part of a run in this process. */
export class RunTrace {
  readonly #telemetry: Telemetry
  readonly #options: TracingOptions
  readonly #operation: Operation
  readonly #about: Attributes
  readonly #conversation: string | undefined
  /** The ids of tool calls with a span. */
  readonly #executed = new Set<string>()

  constructor(telemetry: Telemetry, options: TracingOptions, start: RunStart) {
    const { agent, isWorkflow = false, runId, threadId, resourceId, parent, drained = [], resumed } = start
    this.#telemetry = telemetry
    this.#options = options
    this.#conversation = threadId
    const kind = isWorkflow ? 'invoke_workflow' : 'invoke_agent'
    this.#about = isWorkflow ? { 'gen_ai.operation.name': kind, 'gen_ai.workflow.name': agent.name }
      : { 'gen_ai.operation.name': kind, 'gen_ai.agent.id': agent.id, 'gen_ai.agent.name': agent.name }
    this.#operation = new Operation(telemetry, {
      name: `${kind} ${agent.name}`,
      parent,
      options,
      links: linksOf(drained),
      attributes: {
        ...this.#about,
        'gen_ai.conversation.id': threadId,
        'heed.resource.id': resourceId,
        'heed.run.id': runId,
        'heed.run.resumed': resumed ? true : undefined,
      },
    })
    if (resumed && resumed.attempt > 1) this.#operation.event('heed.takeover', { 'heed.run.attempt': resumed.attempt })
    if (drained.length > 0) this.drained(drained.length, drained, 0)
  }

  /** The parent of spans that belong to this run. */
  get context(): Context {
    return this.#operation.context
  }

  /** The names of its trace and span; undefined where no tracer makes spans. */
  get ids(): { traceId: string; spanId: string } | undefined {
    const span = this.#operation.spanContext
    return span && { traceId: span.traceId, spanId: span.spanId }
  }

  within<T>(work: () => T): T {
    return this.#operation.within(work)
  }

  chat(model: LanguageModel, call: LanguageModelV4CallOptions, step: number): ChatTrace {
    return new ChatTrace(model, call, {
      telemetry: this.#telemetry, options: this.#options, parent: this.#operation.context, conversation: this.#conversation, step,
    })
  }

  /** Executes a tool in a span, which is the parent of the tool's own spans. */
  async tool<T extends { status: string; json?: unknown }>(
    about: { description?: string | undefined; invocation: ToolInvocation }, work: () => Promise<T>,
  ): Promise<T> {
    const operation = this.#toolOperation(about)
    const measured = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': about.invocation.toolName }
    try {
      const outcome = await operation.within(work)
      operation.set({
        'heed.tool.outcome': outcome.status === 'waiting' ? 'suspended' : 'returned',
        ...(this.#options.recordOutputs ? { 'gen_ai.tool.call.result': redactedJSON(outcome.json) } : {}),
      })
      if (isErrorResult(outcome.json)) operation.fail(redactedJSON(outcome.json), 'tool_error')
      return outcome
    } catch (error) {
      failOrAbort(operation, error, 'heed.tool.outcome')
      throw error
    } finally {
      operation.end(this.#telemetry.toolDuration, measured)
    }
  }

  /** Records the failure of a call whose tool was not started; `tool` records the others. */
  toolFailed(invocation: ToolInvocation, error: unknown): void {
    if (this.#executed.has(invocation.toolCallId)) return
    const operation = this.#toolOperation({ invocation })
    operation.fail(error)
    operation.end()
  }

  #toolOperation({ description, invocation }: { description?: string | undefined; invocation: ToolInvocation }): Operation {
    const { toolCallId, toolName, args } = invocation
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
        ...(this.#options.recordInputs ? { 'gen_ai.tool.call.arguments': redactedJSON(args) } : {}),
      },
    })
  }

  /** Executes an attempt of a step of a workflow in a span, which is the parent of the step's own spans. */
  async step<T extends { kind: string; cause?: unknown }>(
    about: { id: string; path: string; attempt: number }, work: () => Promise<T>,
  ): Promise<T> {
    const operation = new Operation(this.#telemetry, {
      name: `execute_step ${about.id}`,
      parent: this.#operation.context,
      options: this.#options,
      attributes: {
        'gen_ai.operation.name': 'execute_step',
        'gen_ai.conversation.id': this.#conversation,
        'heed.workflow.step.id': about.id,
        'heed.workflow.step.path': about.path,
        'heed.workflow.step.attempt': about.attempt,
      },
    })
    try {
      const settled = await operation.within(work)
      operation.set({ 'heed.workflow.step.outcome': settled.kind })
      if (settled.kind === 'failed') failOrAbort(operation, settled.cause, 'heed.workflow.step.outcome')
      return settled
    } finally {
      operation.end()
    }
  }

  /** Searches in a span. `about` returns the attributes of the result. */
  async search<T>(query: string, topK: number, work: () => Promise<T>, about: (result: T) => Attributes): Promise<T> {
    const operation = new Operation(this.#telemetry, {
      name: 'search_memory',
      parent: this.#operation.context,
      options: this.#options,
      attributes: {
        'gen_ai.operation.name': 'search_memory',
        'gen_ai.conversation.id': this.#conversation,
        'gen_ai.request.top_k': topK,
        ...(this.#options.recordInputs ? { 'gen_ai.retrieval.query.text': redactedJSON(query) } : {}),
      },
    })
    try {
      const result = await operation.within(work)
      operation.set({ ...about(result), 'heed.recall.duration_ms': operation.elapsed * 1_000 })
      return result
    } catch (error) {
      operation.fail(error)
      throw error
    } finally {
      operation.end()
    }
  }

  /** Records a drain at a boundary, also one of no signals. */
  drained(count: number, rows: readonly MessageRow[], step: number): void {
    this.#telemetry.mailboxDepth?.record(count, { 'gen_ai.agent.id': this.#about['gen_ai.agent.id'] })
    if (count === 0) return
    const ids = rows.map(({ id }) => id)
    this.#operation.event('heed.drain', { 'heed.drain.count': count, 'heed.step': step, 'heed.signal.ids': ids })
    if (step > 0) this.#operation.link(linksOf(rows))
  }

  /** Records a state that the run itself added to a lane. */
  laneChanged(id: string, mode: 'snapshot' | 'delta', step: number): void {
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

  /** Ends the span of a run that failed before its first step, or that another process continues. */
  fail(error: unknown): void {
    failOrAbort(this.#operation, error, 'heed.run.outcome')
    this.#operation.end(this.#telemetry.agentDuration, this.#about)
  }
}

/** Tools of MCP servers return errors as results. */
function isErrorResult(result: unknown): boolean {
  return typeof result === 'object' && result !== null && 'isError' in result && result.isError === true
}

/** An abort is not an error: the span has the outcome `aborted` and no failure. */
function failOrAbort(operation: Operation, error: unknown, outcome: string): void {
  const aborted = (isHeedError(error) && error.code === 'aborted') || (error instanceof Error && error.name === 'AbortError')
  if (!aborted) return operation.fail(error)
  operation.set({ [outcome]: 'aborted' })
}

/** The trace of a run that starts now; undefined unless an SDK is registered. */
export function traceRun(options: TracingOptions | false | undefined, start: () => RunStart): RunTrace | undefined {
  const telemetry = telemetryFor(options)
  return telemetry && new RunTrace(telemetry, options || {}, start())
}

/** Executes a run below its span, and ends the span with the result. */
export function runInTrace(trace: RunTrace | undefined, work: () => Promise<RunResult>): Promise<RunResult> {
  return trace ? endWithResult(trace, work) : work()
}

async function endWithResult(trace: RunTrace, work: () => Promise<RunResult>): Promise<RunResult> {
  const result = await prepareInTrace(trace, work)
  trace.end(result)
  return result
}

/** Executes the preparation of a run below its span. A failure ends the span. */
export async function prepareInTrace<T>(trace: RunTrace | undefined, work: () => Promise<T>): Promise<T> {
  if (!trace) return work()
  try {
    return await trace.within(work)
  } catch (error) {
    trace.fail(error)
    throw error
  }
}

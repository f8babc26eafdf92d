import { createHash } from 'node:crypto'
import { describe, HeedError, isHeedError, readable } from '../../base/errors.ts'
import { orderedJSON, type JSONValue } from '../../base/json.ts'
import { isAsyncIterable, untilAborted } from '../../base/promises.ts'
import type { ToolInvocation } from '../../message/message.ts'
import { threadDataTypes } from '../../processors/chunk-results.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import { describeIssues, type CompiledSchema } from '../../schema/compile.ts'
import type { ApprovalRequest, ChildCall, Chunk } from '../../message/chunk.ts'
import type { Run } from '../loop/run.ts'
import { addUsage } from '../model/model-parts.ts'
import { isProviderError } from '../model/provider-error.ts'
import type { ModelToolCall } from '../step/step-recorder.ts'
import type { WaitingCall } from '../step/step-result.ts'
import { setNesting, type ApprovalContext, type Nesting, type ToolContext } from './tool.ts'
import { runInCall, type ActiveCall } from './active-call.ts'
import { copyOf, encodeModelOutput, toJSON } from './payloads.ts'
import type { ResolvedTool } from './tool-set.ts'

/** A decision about a suspended call. */
interface Decision {
  approved?: boolean
  reason?: string
  by?: string
  resumeData?: JSONValue
  /** The decision is about this call of a child thread. */
  child?: ChildCall
}

/** A call to run now, with the decision about it if it was suspended. */
export interface OpenCall extends ModelToolCall {
  decision?: Decision
  /** Whether the policies let the agent run it by itself; undefined until they are asked. */
  permitted?: boolean
  /** The error to return instead of running it: it had started when its process died, and must not start twice. */
  interrupted?: string
  /** It had started when its process died, and may start again. Where it does not, the model reads `interrupted` and `child` is aborted. */
  startedBefore?: { interrupted: string; child: Pick<ChildCall, 'threadId' | 'runId'> }
}

/**
 * How a call ended. `completed`: the model gets a result, which may be an error. `suspended`: it waits for a decision.
 * `client`: the tool has no `execute`; the caller of the agent runs it.
 */
export type CallOutcome =
  | { status: 'completed'; invocation: ToolInvocation }
  | { status: 'suspended'; call: WaitingCall; invocation: ToolInvocation }
  | { status: 'client' }

/** What the calls of one step share. */
export interface CallScope {
  /** Aborts with the run, and when one of the calls failed it. */
  signal: AbortSignal
  /** Fails the run: a processor rejected what a tool produced, or threw. */
  fail(error: unknown): void
}

/** The return value of a tool, before output processors have checked it. */
interface Returned {
  status: 'returned'
  resolved: ResolvedTool
  input: unknown
  output: unknown
  json: JSONValue
  /** The rest of its `timeoutMs`. */
  remainingMs: number | undefined
}

/** An error of the tool, or about its result, which it may quote, as the `cause`. Output processors have not checked it. */
class Failure extends Error {}

/** One call of the model: its approval, its execution, and its result. */
export class ToolExecution {
  readonly #run: Run
  readonly #scope: CallScope
  readonly #call: OpenCall
  readonly #invocation: ToolInvocation
  /** Set when the tool suspended itself. */
  #suspended: Pick<WaitingCall, 'kind' | 'payload' | 'request' | 'child'> | undefined
  /** From here on its context publishes nothing. */
  #ended = false

  constructor(run: Run, scope: CallScope, call: OpenCall) {
    this.#run = run
    this.#scope = scope
    this.#call = call
    this.#invocation = call.part.toolInvocation
  }

  /**
   * Every failure of the call becomes an error that the model can read and correct. Throws only what processors throw, and the error of a
   * run that was lost: its next process has the outcome of the call.
   */
  async outcome(): Promise<CallOutcome> {
    let attempt: CallOutcome | Returned
    try {
      attempt = await this.#attempt()
    } catch (thrown) {
      const error = readable(thrown)
      const cause = error instanceof Failure ? error.cause : error
      if (this.#run.isLost(cause)) throw cause
      this.#run.trace?.toolFailed(this.#invocation, cause)
      return this.#failed(error)
    }
    if (attempt.status !== 'returned') return attempt
    const { processors } = this.#run
    let result = attempt.json
    if (processors.checksToolResults) {
      const checked = await processors.toolResult(this.#run, this.#invocation, attempt.json)
      if ('rejected' in checked) return this.#error(checked.rejected)
      result = checked.result
    }
    try {
      return await this.#complete(attempt, result)
    } catch (error) {
      return this.#failed(error)
    }
  }

  async #attempt(): Promise<CallOutcome | Returned> {
    const { invalid, decision } = this.#call
    const { toolCallId, toolName, args } = this.#invocation
    if (invalid !== undefined) throw new HeedError('tool_input_invalid', `${invalid}. Call ${toolName} again with valid JSON.`)
    const resolved = this.#run.offeredTools.get(toolName)
    if (!resolved) throw unknownTool(toolName, [...this.#run.offeredTools.keys()])
    if (decision?.approved === false && !decision.child) return this.#denied()
    const input = await validInput(resolved, args)
    if (decision === undefined && (await this.#needsApproval(resolved, input))) {
      const call: WaitingCall = { toolCallId, toolName, args, kind: 'approval', request: this.#request() }
      return { status: 'suspended', call, invocation: this.#invocation }
    }
    if (!resolved.tool.execute) return { status: 'client' }
    const work = () => this.#execute(resolved, input)
    const { trace } = this.#run
    try {
      return await (trace ? trace.tool({ description: resolved.tool.description, invocation: this.#invocation }, work) : work())
    } catch (error) {
      throw new Failure('', { cause: readable(error) })
    }
  }

  async #execute(resolved: ResolvedTool, input: unknown): Promise<CallOutcome | Returned> {
    const { tool, name } = resolved
    const { toolCallId, args } = this.#invocation
    const data = this.#call.decision?.resumeData
    const resumeData = data === undefined
      ? undefined
      : await validate(resolved.resume, data, `The data that ${name} was resumed with doesn't match its resumeSchema`)
    const began = this.#run.clock.now()
    let output: unknown
    const active: ActiveCall = { host: this.#run.host, threadId: this.#run.threadId ?? '', hasEnded: false }
    try {
      const start = (signal: AbortSignal) => {
        this.#scope.signal.throwIfAborted()
        this.#call.hasRun = true
        return runInCall(active, () => tool.execute?.(input, this.#context(signal, resumeData)))
      }
      const begin = (signal: AbortSignal) => {
        const ready = this.#call.begun ? this.#run.host.beforeTool?.() : this.#beginning().then(() => this.#run.host.beforeTool?.())
        return ready ? ready.then(() => start(signal)) : start(signal)
      }
      output = await this.#race(resolved, tool.timeoutMs, begin, true)
    } catch (error) {
      if (!this.#suspended) throw error
    } finally {
      this.#ended = true
      active.hasEnded = true
    }
    if (this.#suspended) {
      await validate(resolved.suspend, this.#suspended.payload, `The payload that ${name} suspended with doesn't match its suspendSchema`)
      const { child, request } = this.#suspended
      const own = child ? request && { ...request, path: [this.#run.agent.id, ...request.path] } : this.#request()
      const call = { toolCallId, toolName: name, args, ...this.#suspended, ...(own ? { request: own } : {}) }
      return { status: 'suspended', call, invocation: this.#invocation }
    }
    // A returned error counts as a thrown one.
    if (output instanceof Error) throw output
    const remainingMs = tool.timeoutMs === undefined ? undefined : Math.max(0, tool.timeoutMs - (this.#run.clock.now() - began))
    const valid = await validate(resolved.output, output, `The result of ${name} doesn't match its outputSchema`)
    return { status: 'returned', resolved, input, output: valid, json: toJSON(valid, `The result of ${name}`), remainingMs }
  }

  /** A new request for a decision about this call. */
  #request(): ApprovalRequest {
    const { toolName, args } = this.#invocation
    // A digest of arguments that displays must not show would let them be guessed: it is of a random text too.
    const salt = this.#run.display.hasRule(toolName) ? [this.#run.newId()] : []
    const digest = createHash('sha256').update(orderedJSON([toolName, args, ...salt])).digest('base64url')
    const { taintedBy } = this.#run.history
    const request = { id: this.#run.newId(), path: [this.#run.agent.id, toolName], toolName, args, digest }
    return taintedBy.length === 0 ? request : { ...request, taintedBy: [...taintedBy] }
  }

  /** Stores that the call has begun, right before it does: a later process must not run it again. */
  #beginning(): Promise<void> {
    this.#call.beginning = this.#begin()
    return this.#call.beginning
  }

  async #begin(): Promise<void> {
    await this.#run.commit({ step: this.#run.step, rows: [], started: [this.#invocation.toolCallId] })
    this.#call.begun = true
  }

  /** The outcome of a tool that returned. `checked` is its result after output processors. */
  async #complete({ resolved, input, output, json, remainingMs }: Returned, checked: JSONValue): Promise<CallOutcome> {
    const { tool, name } = resolved
    // A processor may have kept the result, and change it later.
    const result = this.#run.processors.checksToolResults ? toJSON(checked, `The result of ${name}, as a processor changed it,`) : json
    const invocation: ToolInvocation = { ...this.#invocation, ...this.#approval, state: 'result', result }
    if (!tool.toModelOutput) return { status: 'completed', invocation }
    // What a processor removed from the result must not reach the model this way.
    const source = checked === json ? output : result
    let modelOutput: unknown
    try {
      const call = { toolCallId: this.#invocation.toolCallId, input }
      modelOutput = await this.#race(resolved, remainingMs, () => tool.toModelOutput?.(source, call))
    } catch (error) {
      throw new Failure('', { cause: readable(error) })
    }
    return { status: 'completed', invocation: { ...invocation, modelOutput: encodeModelOutput(modelOutput, name) } }
  }

  async #failed(error: unknown): Promise<CallOutcome> {
    const cause = error instanceof Failure ? error.cause : error
    const text = this.#errorText(cause)
    if (!(error instanceof Failure)) return this.#error(text)
    const code = isHeedError(cause) ? cause.code : 'tool_failed'
    if (this.#scope.signal.aborted) return this.#error(text, code)
    const checked = await this.#run.processors.toolResult(this.#run, this.#invocation, text, { isError: true })
    if ('rejected' in checked) return this.#error(checked.rejected)
    return this.#error(typeof checked.result === 'string' ? checked.result : JSON.stringify(checked.result), code)
  }

  /** What the model gets of an error, and the readers of the thread within this process. The words of a provider are for operators. */
  #errorText(error: unknown): string {
    const { toolName, toolCallId } = this.#invocation
    if (!isHeedError(error)) return `${toolName} failed: ${describe(error)}`
    if (!isProviderError(error.code)) return error.message
    const { code, message } = error
    this.#run.logger.error('a provider failed within a tool', { runId: this.#run.id, toolName, toolCallId, code, error: message })
    return `${toolName} failed: the provider of a model failed (${error.code}).`
  }

  #error(errorText: string, errorCode?: string): CallOutcome {
    const error = { errorText, ...(errorCode === undefined ? {} : { errorCode }) }
    return { status: 'completed', invocation: { ...this.#invocation, ...this.#approval, state: 'output-error', ...error } }
  }

  #denied(): CallOutcome {
    return { status: 'completed', invocation: { ...this.#invocation, ...this.#approval, state: 'output-denied' } }
  }

  /** The decision about this call, for history; empty where it needed none, or where the decision is about the call of a child thread. */
  get #approval(): Pick<ToolInvocation, 'approval'> {
    const { approved, by, reason, child } = this.#call.decision ?? {}
    if (approved === undefined || child) return {}
    return { approval: { approved, ...(by === undefined ? {} : { by }), ...(reason === undefined ? {} : { reason }) } }
  }

  async #needsApproval({ tool }: ResolvedTool, input: unknown): Promise<boolean> {
    if (this.#run.options.requireToolApproval || !(await isPermitted(this.#run, this.#call))) return true
    const { id: runId, threadId, resourceId, requestContext, history: { taintedBy } } = this.#run
    const sent = this.#run.history.sentMessages()
    const context: ApprovalContext = {
      toolCallId: this.#invocation.toolCallId,
      runId,
      ...(threadId === undefined ? {} : { threadId }),
      ...(resourceId === undefined ? {} : { resourceId }),
      requestContext,
      taintedBy,
      get messages() {
        return sent()
      },
    }
    return tool.requireApproval(input, context)
  }

  #context(abortSignal: AbortSignal, resumeData: unknown): ToolContext {
    const { id: runId, agent, threadId, resourceId, requestContext, history: { taintedBy } } = this.#run
    const { toolCallId, toolName } = this.#invocation
    const sent = this.#run.history.sentMessages()
    const context: ToolContext = {
      toolCallId,
      toolName,
      runId,
      agentId: agent.id,
      ...(threadId === undefined ? {} : { threadId }),
      ...(resourceId === undefined ? {} : { resourceId }),
      abortSignal,
      requestContext,
      taintedBy,
      get messages() {
        return sent()
      },
      suspend: (payload) => this.#suspend({ kind: 'suspend', payload: toJSON(payload, `The payload that ${toolName} suspended with`) }),
      ...(resumeData === undefined ? {} : { resumeData }),
      write: (part) => {
        checkWrittenType(toolName, part.type)
        this.#publish({ ...part, data: toJSON(part.data, `What ${toolName} wrote`), runId })
      },
      report: (output) => this.#report(toJSON(output, `What ${toolName} reported`)),
      sendSignal: async (signal) => {
        if (this.#ended) throw new HeedError('no_active_run', `The call of ${toolName} has ended: it can't send signals any more.`)
        await this.#run.sendSignal(signal).catch((error: unknown) => {
          if (failsRun(this.#run, error)) this.#scope.fail(error)
          throw error
        })
      },
    }
    setNesting(context, this.#nesting())
    return context
  }

  #nesting(): Nesting {
    const { child, ...decision } = this.#call.decision ?? {}
    return {
      step: this.#run.step,
      decision: child && { ...decision, child },
      report: (chunk) => this.#report(chunk),
      isHandedOver: () => this.#run.isLost(this.#scope.signal.reason),
      suspend: (suspension) => this.#suspend(suspension),
      addUsage: (usage) => {
        this.#run.usage = addUsage(this.#run.usage, usage)
      },
      addTaint: (taintedBy) => this.#run.history.addTaint(taintedBy),
    }
  }

  #suspend(suspension: Pick<WaitingCall, 'kind' | 'payload' | 'request' | 'child'>): never {
    this.#suspended = suspension
    throw new HeedError('tool_interrupted', `${this.#invocation.toolName} suspended itself.`)
  }

  #report(output: unknown): void {
    const { toolCallId, toolName } = this.#invocation
    this.#publish(this.#run.chunk('tool-output', { toolCallId, toolName, output }))
  }

  #publish(chunk: Chunk): void {
    if (this.#ended) return
    const published = this.#run.publish(chunk)
    // The tool does not wait for the processors of the stream, but their failure is the run's.
    if (published instanceof Promise) published.catch(this.#scope.fail)
  }

  /**
   * Waits for the tool, but not beyond its `timeoutMs` nor beyond the signal: a tool that never settles can't block a thread.
   * Of an async iterable, the last value is the result; with `publish`, the values before it are published as preliminary results.
   */
  #race(
    { name, tool }: ResolvedTool, remainingMs: number | undefined, start: (signal: AbortSignal) => unknown, publish = false,
  ): Promise<unknown> {
    const { signal } = this.#scope
    const controller = new AbortController()
    return new Promise((resolve, reject) => {
      const end = (error: HeedError) => {
        release()
        controller.abort(error)
        reject(error)
      }
      const onAbort = () => end(aborted(name, signal.reason))
      const timer = remainingMs === undefined
        ? undefined
        : this.#run.clock.after(remainingMs, () => {
          end(new HeedError('tool_timeout', `${name} did not finish within ${tool.timeoutMs} ms.`))
        })
      const release = () => {
        timer?.cancel()
        signal.removeEventListener('abort', onAbort)
      }
      if (signal.aborted) return onAbort()
      signal.addEventListener('abort', onAbort, { once: true })
      this.#lastValue(start, controller.signal, publish).then(
        (value) => {
          release()
          resolve(value)
        },
        (error: unknown) => {
          release()
          reject(error)
        },
      )
    })
  }

  async #lastValue(start: (signal: AbortSignal) => unknown, signal: AbortSignal, publish: boolean): Promise<unknown> {
    const value = await start(signal)
    if (!isAsyncIterable(value)) return value
    let last: unknown
    let first = true
    for await (const item of value) {
      if (signal.aborted) break
      if (publish && !first) await this.#publishPreliminary(last)
      first = false
      last = item
    }
    return last
  }

  async #publishPreliminary(value: unknown): Promise<void> {
    const result = toJSON(value, `The result of ${this.#invocation.toolName}`)
    try {
      const checked = await this.#run.processors.toolResult(this.#run, this.#invocation, result, { preliminary: true })
      if ('result' in checked) await this.#run.display.publishResult({ ...this.#invocation, state: 'result', result: checked.result }, true)
    } catch (error) {
      this.#scope.fail(error)
    }
  }
}

/** Asks the policies once whether the agent may run this call by itself. Where they cannot be asked, it may not. */
export async function isPermitted(run: Run, call: OpenCall): Promise<boolean> {
  const { toolPolicy, agent, resourceId, history: { taintedBy } } = run
  if (!toolPolicy) return true
  if (call.permitted !== undefined) return call.permitted
  const asked = toolPolicy({ agentId: agent.id, resourceId, toolName: call.part.toolInvocation.toolName, taintedBy })
  // An abort ends the wait: the call is not run then.
  return (call.permitted = await untilAborted(asked, run.signal).catch(() => false))
}

/** The error that the model reads of a call that an abort ended. */
export function aborted(toolName: string, cause?: unknown): HeedError {
  return new HeedError('aborted', `${toolName} was stopped: the run was aborted.`, { cause })
}

async function validate(schema: CompiledSchema | undefined, value: unknown, problem: string): Promise<unknown> {
  if (!schema) return value
  const checked = await schema.validate(value)
  if (!checked.ok) throw new HeedError('tool_output_invalid', `${problem}: ${describeIssues(checked.issues)}`)
  return checked.value
}

/** A copy: a tool that changes its input must not change the stored call. */
async function validInput(resolved: ResolvedTool, args: JSONValue): Promise<unknown> {
  const input = copyOf(args)
  if (!resolved.input) return input
  const checked = await resolved.input.validate(input)
  if (checked.ok) return checked.value
  throw new HeedError(
    'tool_input_invalid',
    `The input of ${resolved.name} is not valid: ${describeIssues(checked.issues)}. Correct it and call the tool again.`,
  )
}

/** A tool may only publish data chunks: a chunk of another type would look like one of the run. */
function checkWrittenType(toolName: string, type: unknown): void {
  if (typeof type !== 'string' || !type.startsWith('data-')) {
    const message = `${toolName} wrote a part of type '${String(type)}'. Types that a tool writes begin with 'data-'.`
    throw new HeedError('invalid_argument', message)
  }
  if (threadDataTypes.has(type)) {
    const hint = 'Choose another type, or send a signal with sendSignal().'
    throw new HeedError('invalid_argument', `${toolName} wrote a part of type '${type}', which only the thread may publish. ${hint}`)
  }
}

function unknownTool(name: string, available: readonly string[]): HeedError {
  const hint = available.length === 0 ? '; no tools are available.' : `. Available: ${available.join(', ')}.`
  return new HeedError('unknown_tool', `There is no tool '${name}'${hint}`)
}

/** True for errors that end the run even if the tool catches them: a processor rejected or threw, or the host rejected the run. */
function failsRun(run: Run, error: unknown): boolean {
  return error instanceof TripwireAbort || run.isLost(error) || (isHeedError(error) && error.code === 'processor_failed')
}

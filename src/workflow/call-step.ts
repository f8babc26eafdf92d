import type { Clock, Timer } from '../base/clock.ts'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import { copyPlain, type JSONObject, type JSONValue } from '../base/json.ts'
import { compileSchema, describeIssues } from '../schema/compile.ts'
import type { Schema } from '../schema/schema.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ChildCall, Usage } from '../message/chunk.ts'
import { toJSONValue } from './json-value.ts'
import { setStepNesting, type AnyStep, type CodeStep, type StepContext, type StepNesting } from './step.ts'

/** What a call of a step needs of its run. */
export interface StepCall {
  step: CodeStep
  input: JSONValue | undefined
  state: JSONObject
  resume?: JSONValue | undefined
  suspended?: JSONValue | undefined
  retryCount: number
  stepKey: string
  runId: string
  workflowId: string
  resourceId?: string | undefined
  requestContext: RequestContext
  validateInputs: boolean
  abortSignal: AbortSignal
  clock: Clock
  nesting: Pick<StepNesting, 'path' | 'failures' | 'seat' | 'child'>
  initData(): JSONValue | undefined
  resultOf(step: AnyStep | string): JSONValue | undefined | null
  write(output: unknown): void
}

/** How a call of a step ended. */
export type Settled =
  | { kind: 'success'; output: JSONValue | undefined; state: JSONObject | undefined }
  | { kind: 'bailed'; output: JSONValue | undefined; state: JSONObject | undefined }
  | { kind: 'suspended'; payload: JSONValue | undefined; label?: string | undefined; child?: ChildCall; state: JSONObject | undefined }
  | { kind: 'canceled' }
  /** `final`: it would fail again. */
  | { kind: 'failed'; error: JSONObject; cause: unknown; final: boolean }

/** Thrown by `suspend()`, `bail()` and `abort()`, so that no code of the step runs behind them. It counts also where it is caught. */
class Leaving extends Error {
  override readonly name = 'StepLeft'
}

/** How a call of a step ended, and what the agents that it asked took. */
export type SettledCall = Settled & { usage?: Usage }

/** Errors after which another process has the run. */
export const handedOver: ReadonlySet<string> = new Set(['closed', 'fenced', 'thread_deleted', 'store_failed'])

/** Calls a step once. Never rejects. */
export async function callStep(call: StepCall): Promise<SettledCall> {
  let usage: Usage | undefined
  const settled = await settle(call, (more) => (usage = addUsage(usage, more)))
  return usage ? { ...settled, usage } : settled
}

async function settle(call: StepCall, onUsage: (usage: Usage) => void): Promise<Settled> {
  const { step } = call
  let left: Settled | undefined
  let state: JSONObject | undefined
  const leave = (settled: Settled): never => {
    left ??= settled
    throw new Leaving('The step has left: suspend(), bail() and abort() end it. Do not catch this error.')
  }
  const limits = new StepLimits(call)
  try {
    const schema = call.validateInputs ? step.inputSchema : undefined
    const inputData = await validated(schema, call.input, `The input of step '${step.id}'`, 'step_input_invalid')
    const context: StepContext = {
      inputData,
      state: copyPlain(call.state),
      setState(change) {
        state = { ...state, ...(toJSONValue(change, `the state of step '${step.id}'`) as JSONObject) }
      },
      getInitData: <T>() => call.initData() as T,
      getStepResult: (other: AnyStep | string) => call.resultOf(other) ?? null,
      suspend: (payload, options) => leave({
        kind: 'suspended', payload: toJSONValue(payload, `what step '${step.id}' suspends with`), label: options?.resumeLabel, state,
      }),
      bail: (result) => leave({ kind: 'bailed', output: toJSONValue(result, `the result of step '${step.id}'`), state }),
      abort: () => leave({ kind: 'canceled' }),
      get abortSignal() {
        return limits.signal
      },
      runId: call.runId,
      workflowId: call.workflowId,
      resourceId: call.resourceId,
      requestContext: call.requestContext,
      retryCount: call.retryCount,
      stepKey: call.stepKey,
      writer: { write: call.write },
      ...(call.resume === undefined ? {} : { resumeData: call.resume }),
      ...(call.suspended === undefined ? {} : { suspendData: call.suspended }),
    }
    setStepNesting(context, {
      ...call.nesting,
      isHandedOver: () => limits.isHandedOver,
      suspend: (payload, child) => leave({ kind: 'suspended', payload, child, state }),
      addUsage: onUsage,
    })
    if (step.requestContextSchema)
      await validated(
        step.requestContextSchema, call.requestContext.all, `The request context of step '${step.id}'`,
        'invalid_request_context',
      )
    const output = await limits.race(step.execute(context))
    if (left) return await checkedSuspension(step, left)
    const checked = await validated(step.outputSchema, output, `The output of step '${step.id}'`, 'step_output_invalid')
    return { kind: 'success', output: toJSONValue(checked, `the output of step '${step.id}'`), state }
  } catch (error) {
    if (left) return checkedSuspension(step, left)
    return failure(error)
  } finally {
    limits.end()
  }
}

async function checkedSuspension(step: CodeStep, left: Settled): Promise<Settled> {
  if (left.kind !== 'suspended' || !step.suspendSchema) return left
  try {
    await validated(step.suspendSchema, left.payload, `What step '${step.id}' suspends with`, 'step_output_invalid')
    return left
  } catch (error) {
    return failure(error)
  }
}

export function addUsage(sum: Usage | undefined, more: Usage): Usage {
  if (!sum) return { ...more }
  const added = { ...sum }
  for (const key of Object.keys(added) as Array<keyof Usage>) added[key] += more[key]
  return added
}

/** The failure of a step. An error of Heed that says so is not worth another attempt. */
export function failure(error: unknown): Extract<Settled, { kind: 'failed' }> {
  return {
    kind: 'failed', error: stepError(error), cause: error, final: isHeedError(error) && !error.retryable && error.code !== 'step_timeout',
  }
}

/** An error as rows and chunks have it. */
export function stepError(error: unknown): JSONObject {
  if (isHeedError(error)) return error.toJSON() as unknown as JSONObject
  const name = error instanceof Error ? error.name : 'Error'
  return { name, code: 'step_failed', message: describe(error) }
}

/** The value of a schema; the value itself where there is none. */
export async function validated(
  schema: Schema | undefined, value: unknown, subject: string,
  code: 'step_input_invalid' | 'step_output_invalid' | 'invalid_request_context' | 'invalid_argument',
): Promise<unknown> {
  if (schema === undefined) return value
  const result = await compileSchema(schema, subject).validate(value)
  if (result.ok) return result.value
  throw new HeedError(
    code, `${subject} does not match its schema: ${describeIssues(result.issues)}.`, { details: { issues: result.issues } },
  )
}

/** What ends an attempt before its code does: the end of the run, and `timeoutMs`. */
class StepLimits {
  readonly #call: StepCall
  readonly #timer: Timer | undefined
  /** Made when the step reads it: most steps do not, and a signal costs more than a small step. */
  #own: AbortController | undefined
  #signal: AbortSignal | undefined
  #ended = Promise.withResolvers<never>()
  #timeout: HeedError | undefined
  #isOver = false
  readonly #onAbort = () => this.#ended.reject(this.#call.abortSignal.reason)

  constructor(call: StepCall) {
    this.#call = call
    const { step, clock, abortSignal } = call
    // A call that ends first never waits for it.
    this.#ended.promise.catch(() => {})
    if (step.timeoutMs !== undefined) this.#timer = clock.after(step.timeoutMs, () => this.#expire())
    if (abortSignal.aborted) this.#onAbort()
    else abortSignal.addEventListener('abort', this.#onAbort)
  }

  get signal(): AbortSignal {
    if (this.#signal) return this.#signal
    this.#own = new AbortController()
    if (this.#timeout || this.#isOver) this.#own.abort(this.#timeout)
    return (this.#signal = AbortSignal.any([this.#call.abortSignal, this.#own.signal]))
  }

  /** Another process continues the run; false where the attempt had timed out before. */
  get isHandedOver(): boolean {
    const { reason } = this.#call.abortSignal as { reason: unknown }
    return this.#timeout === undefined && isHeedError(reason) && handedOver.has(reason.code)
  }

  race(work: unknown): Promise<unknown> {
    return Promise.race([work, this.#ended.promise])
  }

  #expire(): void {
    this.#timeout = timedOut(this.#call.step)
    this.#own?.abort(this.#timeout)
    this.#ended.reject(this.#timeout)
  }

  /** What the step has begun with its signal, and left, ends too. */
  end(): void {
    this.#isOver = true
    this.#timer?.cancel()
    this.#call.abortSignal.removeEventListener('abort', this.#onAbort)
    this.#own?.abort()
  }
}

function timedOut({ id, timeoutMs }: CodeStep): HeedError {
  return new HeedError(
    'step_timeout', `Step '${id}' took longer than its timeoutMs of ${timeoutMs} ms.`, { retryable: true, details: { stepId: id } },
  )
}

import type { Clock } from '../base/clock.ts'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { compileSchema, describeIssues } from '../schema/compile.ts'
import type { Schema } from '../schema/schema.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { AnyStep, CodeStep, StepContext } from './step.ts'

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
  initData(): JSONValue | undefined
  resultOf(step: AnyStep | string): JSONValue | undefined | null
  write(output: unknown): void
}

/** How a call of a step ended. */
export type Settled =
  | { kind: 'success'; output: JSONValue | undefined; state: JSONObject | undefined }
  | { kind: 'bailed'; output: JSONValue | undefined; state: JSONObject | undefined }
  | { kind: 'suspended'; payload: JSONValue | undefined; label: string | undefined; state: JSONObject | undefined }
  | { kind: 'canceled' }
  /** `final`: it would fail again. */
  | { kind: 'failed'; error: JSONObject; cause: unknown; final: boolean }

/** Thrown by `suspend()`, `bail()` and `abort()`, so that no code of the step runs behind them. It counts also where it is caught. */
class Leaving extends Error {
  override readonly name = 'StepLeft'
}

/** Calls a step once. Never rejects. */
export async function callStep(call: StepCall): Promise<Settled> {
  const { step } = call
  let left: Settled | undefined
  let state: JSONObject | undefined
  const leave = (settled: Settled): never => {
    left ??= settled
    throw new Leaving('The step has left: suspend(), bail() and abort() end it. Do not catch this error.')
  }
  const limit = new AbortController()
  const timer = step.timeoutMs === undefined ? undefined : call.clock.after(step.timeoutMs, () => limit.abort(timedOut(step)))
  const abortSignal = AbortSignal.any([call.abortSignal, limit.signal])
  try {
    const schema = call.validateInputs ? step.inputSchema : undefined
    const inputData = await validated(schema, call.input, `The input of step '${step.id}'`, 'step_input_invalid')
    const context: StepContext = {
      inputData,
      state: structuredClone(call.state),
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
      abortSignal,
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
    if (step.requestContextSchema)
      await validated(
        step.requestContextSchema, call.requestContext.all, `The request context of step '${step.id}'`,
        'invalid_request_context',
      )
    const output = await Promise.race([Promise.resolve(step.execute(context)), rejection(abortSignal)])
    if (left) return await checkedSuspension(step, left)
    const checked = await validated(step.outputSchema, output, `The output of step '${step.id}'`, 'step_output_invalid')
    return { kind: 'success', output: toJSONValue(checked, `the output of step '${step.id}'`), state }
  } catch (error) {
    if (left) return checkedSuspension(step, left)
    return failure(error)
  } finally {
    timer?.cancel()
    limit.abort()
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

/** A value as it is stored and as the next step reads it. */
export function toJSONValue(value: unknown, subject: string): JSONValue | undefined {
  try {
    const text = JSON.stringify(value) as string | undefined
    return text === undefined ? undefined : (JSON.parse(text) as JSONValue)
  } catch (cause) {
    throw new HeedError('step_output_invalid', `${subject} can't be stored as JSON: ${describe(cause)}`, { cause })
  }
}

function rejection(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return promise
}

function timedOut({ id, timeoutMs }: CodeStep): HeedError {
  return new HeedError(
    'step_timeout', `Step '${id}' took longer than its timeoutMs of ${timeoutMs} ms.`, { retryable: true, details: { stepId: id } },
  )
}

import type { Clock } from '../base/clock.ts'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import type { JSONObject, JSONValue } from '../base/json.ts'
import { compileSchema, describeIssues } from '../schema/compile.ts'
import type { Schema } from '../schema/schema.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ChildCall, Usage } from '../message/chunk.ts'
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
    setStepNesting(context, {
      ...call.nesting,
      isHandedOver: () => isHeedError(abortSignal.reason) && handedOver.has(abortSignal.reason.code),
      suspend: (payload, child) => leave({ kind: 'suspended', payload, child, state }),
      addUsage: onUsage,
    })
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

/** The most characters that a value of a run may have as JSON. */
export const mostOfValue: number = 16 * 1024 * 1024

/** A value as it is stored and as the next step reads it. */
export function toJSONValue(value: unknown, subject: string): JSONValue | undefined {
  const text = asJSON(value, subject)
  if (text === undefined) return undefined
  if (text.length <= mostOfValue) return JSON.parse(text) as JSONValue
  const size = `${subject} has ${text.length} characters as JSON; a run stores at most ${mostOfValue}.`
  const message = `${size} Store it elsewhere, and pass its name.`
  throw new HeedError('step_output_invalid', message, { details: { characters: text.length, most: mostOfValue } })
}

function asJSON(value: unknown, subject: string): string | undefined {
  try {
    return JSON.stringify(value)
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

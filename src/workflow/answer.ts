import { checkWhole } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { stepError, validated } from './call-step.ts'
import { toJSONValue } from './json-value.ts'
import type { AskContext } from './plan/graph.ts'
import type { Question, StepRow } from './plan/plan.ts'

/** The row that answers a question of the graph: what a map made, what conditions said, until when a run sleeps. Never rejects. */
export async function answerOf(question: Question, context: AskContext, now: number): Promise<StepRow> {
  const { path, id, kind } = question
  const row = { path, stepId: id, kind: 'ask', attempt: 1, startedAt: now } as const
  try {
    if (kind === 'conditions') return { ...row, status: 'success', output: await chosenBranches(question, context), endedAt: now }
    if (kind === 'start') return await started(row, question, context, now)
    const answer = kind === 'input' || kind === 'output' ? await checkedValue(question, context) : await question.ask?.(context)
    if (kind === 'sleep' || kind === 'sleepUntil')
      return { ...row, kind: 'sleep', status: 'waiting', dueAt: endOfSleep(question, answer, now) }
    if (kind === 'concurrency') checkWhole(`The concurrency of foreach() of '${id}'`, answer, 1)
    const output = toJSONValue(kind === 'condition' ? Boolean(answer) : answer, `the result of '${id}'`)
    return { ...row, status: 'success', endedAt: now, ...(output === undefined ? {} : { output }) }
  } catch (error) {
    return { ...row, status: 'failed', error: stepError(error), endedAt: now }
  }
}

/** Whether the run may start: an error of `onStart` refuses it. */
async function started(
  row: Omit<StepRow, 'status' | 'endedAt'>, { graph }: Question, context: AskContext, now: number,
): Promise<StepRow> {
  const { inputData, state, requestContext, runId, workflowId, resourceId } = context
  await graph.hooks?.onStart?.({ inputData, state, requestContext, runId, workflowId, resourceId } as never)
  return { ...row, status: 'success', endedAt: now }
}

/** What the schema of a workflow makes of its input or output. */
function checkedValue({ kind, graph }: Question, { inputData }: AskContext): Promise<unknown> {
  const [schema, code] = kind === 'input' ? [graph.inputSchema, 'step_input_invalid'] as const
    : [graph.outputSchema, 'step_output_invalid'] as const
  return validated(schema, inputData, `The ${kind} of workflow '${graph.id}'`, code)
}

/** The branches whose conditions are true; with `first`, only the first of them. */
async function chosenBranches({ node }: Question, context: AskContext): Promise<number[]> {
  const chosen: number[] = []
  if (node?.kind !== 'branch') return chosen
  for (const [index, condition] of node.conditions.entries()) {
    if (!(await condition(context))) continue
    chosen.push(index)
    if (node.first) break
  }
  return chosen
}

function endOfSleep({ id, kind }: Question, answer: unknown, now: number): number {
  const at = kind === 'sleep' ? now + Number(answer) : answer instanceof Date ? answer.getTime() : Number.NaN
  if (Number.isFinite(at)) return Math.round(at)
  const wanted = kind === 'sleep' ? 'number of milliseconds' : 'date'
  throw new HeedError('invalid_argument', `${kind}() of '${id}' got no ${wanted}.`)
}

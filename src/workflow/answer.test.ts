import { expect, it } from 'vitest'
import { RequestContext } from '../run/request-context.ts'
import { answerOf } from './answer.ts'
import type { AskContext, Node } from './plan/graph.ts'
import type { Question } from './plan/plan.ts'

const context: AskContext = {
  inputData: 3, state: {}, getInitData: <T>() => 3 as T, getStepResult: () => null, iterationCount: 1, requestContext: new RequestContext(), runId: 'r',
  workflowId: 'w',
}
const question = (kind: Question['kind'], ask?: Question['ask'], node?: Node): Question => ({
  path: '0', id: 'q', kind, graph: undefined as never, node: node as Node, input: 3, iterationCount: 1, ...(ask ? { ask } : {}),
})

it('[F1.6] the answer of a map is a row with what it made as JSON; a map that throws is a row that failed', async () => {
  expect(await answerOf(question('map', ({ inputData }) => ({ n: Number(inputData) + 1, at: new Date(0) })), context, 5)).toEqual({
    path: '0', stepId: 'q', kind: 'ask', attempt: 1, startedAt: 5, endedAt: 5, status: 'success', output: { n: 4, at: '1970-01-01T00:00:00.000Z' },
  })
  const failed = await answerOf(question('map', () => Promise.reject(new Error('no'))), context, 5)
  expect(failed).toMatchObject({ status: 'failed', error: { code: 'step_failed', message: 'no' } })
})

it('[F1.3] the answer of conditions is the branches that are true, in order, or the first of them', async () => {
  const asked: number[] = []
  const condition = (index: number, holds: unknown) => () => {
    asked.push(index)
    return holds as boolean
  }
  const node = (first: boolean): Node => ({ kind: 'branch', conditions: [condition(0, 0), condition(1, 'yes'), condition(2, true)], children: [], first })
  expect(await answerOf(question('conditions', undefined, node(false)), context, 5)).toMatchObject({ status: 'success', output: [1, 2] })
  expect(await answerOf(question('conditions', undefined, node(true)), context, 5)).toMatchObject({ output: [1] })
  expect(asked).toEqual([0, 1, 2, 0, 1])
})

it('[F1.13] the answer of a sleep is the time of its end; what is no time fails', async () => {
  expect(await answerOf(question('sleep', () => 40 * 86_400_000), context, 5)).toMatchObject({ kind: 'sleep', status: 'waiting', dueAt: 3_456_000_005 })
  expect(await answerOf(question('sleepUntil', () => new Date(9)), context, 5)).toMatchObject({ status: 'waiting', dueAt: 9 })
  for (const [kind, answer] of [['sleep', 'soon'], ['sleep', Infinity], ['sleepUntil', 9], ['sleepUntil', new Date('x')]] as const)
    expect(await answerOf(question(kind, () => answer), context, 5)).toMatchObject({ status: 'failed', error: { code: 'invalid_argument' } })
})

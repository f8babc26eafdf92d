import { expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../agent/agent.ts'
import { createTool } from '../../run/tools/tool.ts'
import { scriptedModel } from '../../testing/scripted-model.ts'
import { createStep, createWorkflow } from '../../workflow/index.ts'
import { checks } from '../builtin/checks.ts'
import { createToolCallAccuracyScorer } from '../builtin/measured.ts'
import type { TrajectoryStep } from '../contract.ts'
import { createScorer, notScorable } from '../scorer.ts'
import { runEvals } from './run-evals.ts'

const length = createScorer({ id: 'length', description: 'd' }).generateScore(({ run }) => String(run.output).length).generateReason(({ run }) => `${JSON.stringify(run.input)} gave ${String(run.output)}`)

const repeat = createStep({ id: 'repeat', inputSchema: z.number(), outputSchema: z.string(), execute: ({ inputData }) => 'x'.repeat(inputData) })
const join = createStep({
  id: 'join', inputSchema: z.array(z.string()), outputSchema: z.string(), stateSchema: z.object({ glue: z.string() }).partial(),
  execute: ({ inputData, state, requestContext }) => `${inputData.join(state.glue ?? '')}${String(requestContext.get('end') ?? '')}`,
})
const fails = createStep({ id: 'fails', inputSchema: z.string(), outputSchema: z.string(), execute: ({ inputData }) => (inputData === '' ? Promise.reject(new Error('nothing to say')) : inputData) })
const workflow = createWorkflow({ id: 'say', inputSchema: z.array(z.number()), outputSchema: z.string(), stateSchema: z.object({ glue: z.string() }).partial() }).foreach(repeat).then(join).then(fails).commit()

it('[J3.11] runs a workflow: its result, its steps and their order are scored', async () => {
  const seen: unknown[] = []
  const path = createScorer({ id: 'path', description: 'd', type: 'trajectory' }).generateScore(({ run }) => {
    expectTypeOf(run.output).toEqualTypeOf<TrajectoryStep[]>()
    seen.push(run.output.map(({ stepType, name, toolArgs, toolResult, success, durationMs }) => [stepType, name, toolArgs, toolResult, success, typeof durationMs]))
    return run.output.length
  })
  const result = await runEvals({
    target: workflow,
    data: [{ id: 'a', input: [1, 3], startOptions: { initialState: { glue: '-' } }, requestContext: { end: '!' }, expectedTrajectory: [{ name: 'repeat' }] }, { id: 'b', input: [] }],
    scorers: {
      workflow: [checks.equals('x-xxx!'), { scorer: length, threshold: { min: 1 } }], steps: { repeat: [{ scorer: length, threshold: 2 }], fails: [length] },
      trajectory: [path, checks.toolOrder(['repeat', 'join', 'fails'])],
    },
  })
  expect(result.items[0]).toMatchObject({
    id: 'a', output: 'x-xxx!', runId: expect.any(String) as string, metrics: { durationMs: expect.any(Number) as number },
    scores: { 'equals "x-xxx!"': 1, length: 6, 'repeat.length': 2, 'fails.length': 6, path: 4, 'tool order repeat, join, fails': 1 },
    reasons: { 'repeat.length': '1 gave x' },
  })
  expect(seen).toEqual([[
    ['workflow_step', 'repeat', 1, 'x', true, 'number'], ['workflow_step', 'repeat', 3, 'xxx', true, 'number'], ['workflow_step', 'join', ['x', 'xxx'], 'x-xxx!', true, 'number'],
    ['workflow_step', 'fails', 'x-xxx!', 'x-xxx!', true, 'number'],
  ]])
  expect(result.items[1]).toMatchObject({ id: 'b', errors: { target: { message: expect.stringContaining('nothing to say') as string } }, scores: {} })
  expect(result).toMatchObject({ verdict: 'failed', thresholds: [{ scorerId: 'length', passed: true }, { scorerId: 'repeat.length', mean: 2, passed: true }] })
  const skipped = createWorkflow({ id: 'branch', inputSchema: z.number() }).branch([[({ inputData }) => inputData > 0, repeat]]).commit()
  const none = await runEvals({ target: skipped, data: [{ input: 0 }], scorers: { steps: { repeat: [length] } } })
  expect(none.items[0]?.notScorable).toEqual({ 'repeat.length': 'The step did not run.' })
  // @ts-expect-error the input of the workflow is a list of numbers
  await expect(runEvals({ target: workflow, data: [{ input: ['a'] }], scorers: [length] })).resolves.toMatchObject({ verdict: 'failed' })
})

it('[J3.7] scorers that the target has nothing for are rejected by name', async () => {
  const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Hi.') })
  const data = [{ input: 'x' }]
  await expect(runEvals({ target: agent, data, scorers: { steps: { a: [length] } } })).rejects.toThrow("'steps'")
  await expect(runEvals({ target: agent, data, scorers: { workflow: [length] } })).rejects.toThrow("'workflow'")
  await expect(runEvals({ target: workflow, data: [{ input: [1] }], scorers: { agent: [length] } })).rejects.toThrow("'agent'")
  await expect(runEvals({ target: (text: string) => text, data, scorers: { agent: [length] } })).rejects.toThrow('has no steps')
  await expect(runEvals({ target: workflow, data: [{ input: [1] }], scorers: { steps: { join: [createToolCallAccuracyScorer()] } } })).rejects.toThrow('scorers.steps.join[0]')
  await expect(runEvals({ target: agent, data, scorers: { agent: [length], trajectory: [length] } })).rejects.toThrow("scorer 'length'")
  await expect(runEvals({ target: workflow, data: [{ input: [1], startOptions: { state: 1 } as never }], scorers: [length] })).rejects.toThrow("'state'")
  await expect(runEvals({ target: workflow, data: [{ input: [1], expectedTrajectory: ['x'] as never }], scorers: [length] })).rejects.toThrow('expectedTrajectory')
  const refused = await runEvals({ target: agent, data: [{ input: 'x', startOptions: {} }], scorers: [length] })
  expect(refused.items[0]?.errors.target).toMatchObject({ code: 'unsupported_option' })
  await expect(runEvals({ target: agent, data, scorers: [length], targetOptions: { scorers: {} } as never })).rejects.toThrow("'scorers'")
})

const look = createTool({ id: 'look', inputSchema: z.object({ city: z.string() }), execute: async () => 'A train.' })

it('[J3.11] scores an agent by groups, and its tool calls by those that are expected', async () => {
  const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: { city: 'Sintra' } }] }, 'By train.', { toolCalls: [{ toolName: 'look', input: { city: 'Porto' } }] }, 'By bus.', 'On foot.'])
  const agent = new Agent({ id: 'guide', model, tools: { look } })
  const expectedTrajectory = [{ name: 'look', toolArgs: { city: 'Sintra' } }]
  const result = await runEvals({
    target: agent, data: [{ input: 'How?', expectedTrajectory }, { input: 'How?', expectedTrajectory }, { input: 'How?' }],
    scorers: { agent: [createToolCallAccuracyScorer({ order: 'exact' })], trajectory: [checks.maxToolCalls(1)] },
  })
  expect(result.items.map(({ scores, notScorable }) => [scores, notScorable])).toEqual([
    [{ 'tool-call-accuracy': 1, 'at most 1 tool calls': 1 }, {}], [{ 'tool-call-accuracy': 0, 'at most 1 tool calls': 1 }, {}],
    [{ 'at most 1 tool calls': 1 }, { 'tool-call-accuracy': 'The run has no expectedTrajectory.' }],
  ])
})

it('[J3.12] turns have scorers and gates of their own, and a gate that one misses fails the evaluation', async () => {
  const script = () => scriptedModel([{ toolCalls: [{ toolName: 'look', input: { city: 'Sintra' } }] }, 'By train.', 'At nine.'])
  const evaluate = (gate: string) => runEvals({
    target: new Agent({ id: 'guide', model: script(), tools: { look } }),
    data: [{ turns: [{ input: 'How?', gates: [checks.calledTool('look'), checks.includes('train')], scorers: [length] }, { input: 'When?', gates: [checks.includes(gate)] }] }],
    scorers: [checks.usedNoTools()],
  })
  const passed = await evaluate('nine')
  expect(passed).toMatchObject({ verdict: 'passed', scores: { 'used no tools': 1 } })
  expect(passed.items[0]?.turns).toMatchObject([
    { runId: expect.any(String) as string, scores: { 'called look': 1, 'includes "train"': 1, length: expect.any(Number) as number }, missed: [], errors: {} },
    { scores: { 'includes "nine"': 1 }, missed: [] },
  ])
  expect(await evaluate('ten')).toMatchObject({ verdict: 'failed', items: [{ turns: [{ missed: [] }, { missed: ['includes "ten"'] }] }] })
  const broken = createScorer({ id: 'broken', description: 'd' }).generateScore(() => {
    throw new Error('no')
  })
  const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'Hi.') })
  const failing = await runEvals({ target: agent, data: [{ turns: ['How?', { input: 'When?', scorers: [broken] }] }], scorers: [checks.includes('Hi')] })
  expect(failing).toMatchObject({ verdict: 'failed', summary: { failedItems: 1 }, items: [{ turns: [{ scores: {} }, { errors: { broken: { code: 'scorer_failed' } } }] }] })
  await expect(runEvals({ target: agent, data: [{ id: 'c', turns: [{ input: 'x', gates: ['x' as never] }] }], scorers: [length] })).rejects.toThrow("turns[0] of case 'c': gates[0]")
  await expect(runEvals({ target: agent, data: [{ turns: [{ input: 'x', gate: [] } as never] }], scorers: [length] })).rejects.toThrow("'gate'")
})

it('[J3.2] [J3.3] of a hundred cases one fails: 99 are scored, the verdict is failed, and an equal run gives equal bytes', async () => {
  const target = (text: string) => {
    if (text === '42') throw new Error('no network')
    return text
  }
  const odd = createScorer({ id: 'odd', description: 'd' }).generateScore(({ run }) => (run.output === '7' ? notScorable() : Number(run.output) % 2))
  const evaluate = (concurrency: number) => runEvals({ target, data: Array.from({ length: 100 }, (_, index) => ({ input: String(index) })), scorers: [odd], concurrency })
  const result = await evaluate(1)
  expect(result).toMatchObject({ verdict: 'failed', summary: { totalItems: 100, failedItems: 1, notScorable: 1 } })
  expect(result.items.filter(({ scores }) => scores.odd !== undefined)).toHaveLength(98)
  expect(result.items.filter(({ errors }) => errors.target)).toHaveLength(1)
  expect(JSON.stringify(await evaluate(8))).toBe(JSON.stringify(result))
})

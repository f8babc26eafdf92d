import { expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { createScorer } from '../../src/scorers/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../src/workflow/index.ts'
import { registerSdk } from './sdk.ts'

it('[T1.8] [T1.2] [J4.10] a run of a workflow and the attempts of its steps are spans, and so is a score; what failed says so without its text', async () => {
  const { spans, flush, tracer } = await registerSdk()
  let attempts = 0
  const look = createStep({ id: 'look', execute: () => tracer.startSpan('look up').end() })
  const flaky = createStep({ id: 'flaky', retries: 1, execute: () => (++attempts === 1 ? Promise.reject(new Error('password 1234')) : 'done') })
  const one = createScorer({ id: 'one', description: 'One.' }).generateScore(() => 1)
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hi.']), scorers: { one: { scorer: one } } })
  const workflow = createWorkflow({ id: 'trip' }).then(look).then(flaky).commit()
  const heed = new Heed({ agents: { agent }, workflows: { trip: workflow }, storage: new InMemoryStore(), logger: silentLogger, notifications: { dispatch: { enabled: false } } })
  onTestFinished(() => heed.close())
  expect(await workflow.createRun({ runId: 'r1', resourceId: 'ada' }).start()).toMatchObject({ status: 'success' })
  const { runId } = await agent.generate('Hi', { memory: { thread: 't', resource: 'ada' } })
  await heed.tick()
  // The span of a run ends after its last commit.
  await expect.poll(async () => {
    await flush()
    return spans.map(({ name }) => name).toSorted()
  }).toEqual(expect.arrayContaining(['invoke_workflow trip', 'execute_step look', 'execute_step flaky', 'evaluate one', 'look up']))
  const named = (name: string) => spans.filter((span) => span.name === name)
  const [run] = named('invoke_workflow trip')
  expect(run?.attributes).toMatchObject({ 'gen_ai.operation.name': 'invoke_workflow', 'gen_ai.workflow.name': 'trip', 'gen_ai.conversation.id': 'workflow:trip/r1', 'heed.resource.id': 'ada' })
  const steps = spans.filter(({ name }) => name.startsWith('execute_step'))
  expect(steps.map((span) => [span.parentSpanId === run?.spanId, span.attributes['heed.workflow.step.path'], span.attributes['heed.workflow.step.attempt'], span.attributes['heed.workflow.step.outcome']]))
    .toEqual([[true, '0', 1, 'success'], [true, '1', 1, 'failed'], [true, '1', 2, 'success']])
  expect(named('look up')[0]?.parentSpanId).toBe(steps[0]?.spanId)
  expect(steps[1]?.attributes['error.type']).toBe('Error')
  expect(named('evaluate one')[0]?.attributes).toMatchObject({ 'gen_ai.evaluation.name': 'one', 'gen_ai.evaluation.score.value': 1, 'heed.run.id': runId, 'gen_ai.conversation.id': 't', 'gen_ai.agent.id': 'guide' })
  const [invoked] = named('invoke_agent guide')
  expect(named('evaluate one')[0]?.links).toMatchObject([{ traceId: invoked?.traceId, spanId: invoked?.spanId }])
  expect((await heed.listScores()).scores).toMatchObject([{ runId, traceId: invoked?.traceId, spanId: invoked?.spanId, steps: 1, scorerId: 'one', version: '1' }])
  expect(JSON.stringify(spans, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).not.toContain('1234')
})

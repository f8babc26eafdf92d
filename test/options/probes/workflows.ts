import { expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { Agent, Heed, InMemoryStore, RequestContext, silentLogger } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { cloneStep, cloneWorkflow, createStep, createWorkflow } from '../../../src/workflow/index.ts'
import type { Probe } from '../probe.ts'

const number = z.object({ n: z.number() })

/** The options of workflows, steps and runs. */
export const workflows: Probe[] = [
  {
    title: 'a workflow, its steps and their schemas',
    async run() {
      let tries = 0
      const step = createStep({
        id: 'work', description: 'Works.', metadata: { team: 'a' }, inputSchema: number, outputSchema: number, stateSchema: z.object({ seen: z.number() }),
        suspendSchema: z.string(), resumeSchema: number, requestContextSchema: z.object({ plan: z.string() }), retries: 1, idempotent: true, timeoutMs: 60_000,
        execute({ inputData, resumeData, suspend, state, setState, requestContext }) {
          if (++tries === 1) throw new Error('once')
          if (!resumeData) return suspend('How much?', { resumeLabel: 'sum' })
          setState({ seen: state.seen + 1 })
          return { n: inputData.n + resumeData.n + String(requestContext.get('plan')).length }
        },
      })
      expect([step.id, step.description, step.metadata, step.retries, step.idempotent, step.timeoutMs]).toEqual(['work', 'Works.', { team: 'a' }, 1, true, 60_000])
      const workflow = createWorkflow({ id: 'w', description: 'All.', metadata: { a: 1 }, inputSchema: number, outputSchema: number, stateSchema: z.object({ seen: z.number() }) }).then(step).commit()
      expect([workflow.id, workflow.description, workflow.metadata]).toEqual(['w', 'All.', { a: 1 }])
      const heed = new Heed({ workflows: { one: workflow }, storage: new InMemoryStore(), logger: silentLogger })
      onTestFinished(() => heed.close())
      expect(heed.getWorkflow('one')).toBe(workflow)
      const run = workflow.createRun()
      const given = { inputData: { n: 1 }, initialState: { seen: 1 }, requestContext: new RequestContext({ plan: 'four' }) }
      expect(await run.start(given)).toMatchObject({ status: 'suspended', resumeLabels: { sum: '0' } })
      await expect(run.resume({ step: { id: 'other' }, resumeData: { n: 1 } })).rejects.toMatchObject({ code: 'run_not_suspended' })
      expect(await run.resume({ step, label: 'sum', resumeData: { n: 10 } })).toMatchObject({ status: 'success', result: { n: 15 }, state: { seen: 2 } })
      await expect(workflow.createRun().start({ ...given, inputData: { n: 'x' } as never })).rejects.toMatchObject({ code: 'invalid_argument' })
      expect(await workflow.createRun().start({ inputData: { n: 1 }, initialState: { seen: 1 } })).toMatchObject({ status: 'failed', error: { code: 'invalid_request_context' } })
      expect([cloneStep(step, { id: 'other' }).id, cloneWorkflow(workflow, { id: 'copy' }).id]).toEqual(['other', 'copy'])
      const slow = createStep({ id: 'slow', timeoutMs: 1, execute: () => new Promise(() => {}) })
      expect(await createWorkflow({ id: 'late' }).then(slow).commit().createRun().start()).toMatchObject({ status: 'failed', error: { code: 'step_timeout' } })
      const tenants = createWorkflow({ id: 'tenants', requestContextSchema: z.object({ tenant: z.string() }) }).then(createStep({ id: 'any', execute: () => 1 })).commit()
      await expect(tenants.createRun().start()).rejects.toMatchObject({ code: 'invalid_request_context' })
      let failed = 0
      const flaky = createStep({ id: 'flaky', inputSchema: number, execute: () => { if (++failed < 3) throw new Error('no') } })
      const retried = createWorkflow({ id: 'retried', retryConfig: { attempts: 2, delay: 1 }, options: { validateInputs: false } }).map(() => 'no number').then(flaky as never).commit()
      expect(await retried.createRun().start()).toMatchObject({ status: 'success', steps: { flaky: { attempts: 3 } } })
    },
  },
  {
    title: 'the methods of a workflow and of its runs',
    async run() {
      const [a, b] = ['a', 'b'].map((id) => createStep({ id, inputSchema: z.any(), outputSchema: z.string(), execute: () => id }))
      let most = 0
      let running = 0
      const each = createStep({
        id: 'each', inputSchema: z.any(), outputSchema: z.number(),
        async execute() {
          most = Math.max(most, ++running)
          await Promise.resolve()
          return running--
        },
      })
      if (!a || !b) throw new Error('no steps')
      const workflow = createWorkflow({ id: 'w' })
        .branch([[() => true, a], [() => true, b]], { first: true })
        .map(({ inputData }) => [inputData, 1, 2], { id: 'listed' })
        .foreach(each, { concurrency: 3 })
        .sleep(1, { id: 'nap' })
        .sleepUntil(new Date(0), { id: 'past' })
        .waitForEvent('go', { schema: z.number(), timeoutMs: 60_000 })
        .map(({ inputData, getStepResult }) => ({ event: inputData, listed: getStepResult('listed') }))
        .commit()
      const run = workflow.createRun()
      const [observed, done] = [run.observe({}), run.start()]
      const first = observed.next().catch((error: unknown) => error)
      await run.sendEvent('go', 7, { id: 'e' })
      await run.sendEvent('go', 8, { id: 'e' })
      const result = await done
      expect(result).toMatchObject({ status: 'success', result: { event: 7, listed: [{ a: 'a' }, 1, 2] } })
      expect([most, result.path.flatMap(({ stepId }) => (['nap', 'past'].includes(stepId) ? stepId : []))]).toEqual([3, ['nap', 'past']])
      await first
      await expect(run.sendEvent('go', 'x')).rejects.toMatchObject({ code: 'invalid_argument' })
      const stateful = createWorkflow({ id: 's' }).then(createStep({
        id: 'say', inputSchema: z.string(), stateSchema: z.any(), execute: ({ inputData, state, requestContext }) => [inputData, state, requestContext.get('who')],
      }) as never).commit()
      const told = stateful.createRun()
      await told.start({ inputData: 'one' })
      const again = await told.timeTravel({ step: { id: 'say' }, inputData: 'two', initialState: { x: 1 }, requestContext: new RequestContext({ who: 'me' }), runId: 'fork' })
      expect(again).toMatchObject({ runId: 'fork', result: ['two', { x: 1 }, 'me'] })
      const streamed = told.timeTravelStream({ step: { id: 'say' }, inputData: 'three', initialState: { x: 2 }, requestContext: new RequestContext({ who: 'you' }), runId: 'fork-2' })
      expect(await streamed.result).toMatchObject({ runId: 'fork-2', result: ['three', { x: 2 }, 'you'] })
      const agent = new Agent({ id: 'poet', model: scriptedModel(() => '{"line":"Roses"}') })
      const asked = createWorkflow({ id: 'asked' }).map(() => ({ prompt: 'Write.' })).then(createStep(agent, { structuredOutput: { schema: z.object({ line: z.string() }) } })).commit()
      expect(await asked.createRun().start()).toMatchObject({ status: 'success', result: { line: 'Roses' } })
      const heed = new Heed({ workflows: { w: cloneWorkflow(workflow, { id: 'durable' }) }, storage: new InMemoryStore(), logger: silentLogger })
      onTestFinished(() => heed.close())
      const stored = heed.getWorkflow('w').createRun({ runId: 'r' })
      await stored.startAsync()
      await stored.sendEvent('go', 1)
      await stored.start()
      const after: unknown[] = []
      for await (const { type, payload } of stored.observe({ after: '1.1' })) after.push([type, payload.workflowStatus])
      expect(after).toEqual([['workflow-snapshot', 'success']])
    },
  },
]

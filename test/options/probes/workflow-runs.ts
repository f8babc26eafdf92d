import { expect } from 'vitest'
import { z } from 'zod'
import type { ResumeArgs, StartArgs, WorkflowRun } from '../../../src/workflow/index.ts'
import { rejects, type Probe } from '../probe.ts'
import { heed, workflow } from '../walked.ts'

const number = z.object({ n: z.number() })
const seen = z.object({ seen: z.number() })

const say = workflow.createStep({ id: 'say', inputSchema: z.any(), stateSchema: z.any(), execute: ({ inputData, state, requestContext }) => [inputData, state, requestContext.get('who')] })
const ask = workflow.createStep({
  id: 'ask', inputSchema: z.any(), resumeSchema: number, execute: ({ resumeData, suspend }) => resumeData ?? suspend('How much?', { resumeLabel: 'sum' }),
})

const ended = async (run: WorkflowRun, status: string) => {
  await expect.poll(async () => (await run.status())?.status).toBe(status)
  return run.status()
}

const starts: Record<string, (run: WorkflowRun, args: StartArgs<unknown, unknown>) => Promise<unknown>> = {
  async startAsync(run, args) {
    await run.startAsync(args)
    return ended(run, 'success')
  },
  stream: (run, args) => run.stream(args).result,
}

const resumes: Record<string, (run: WorkflowRun, args: ResumeArgs) => Promise<unknown>> = {
  async resumeAsync(run, args) {
    await run.resumeAsync(args)
    return ended(run, 'success')
  },
  resumeStream: (run, args) => run.resumeStream(args).result,
}

export const workflowRuns: Probe[] = [
  ...Object.entries(starts).map(([name, start]): Probe => ({
    title: `WorkflowRun.${name}: what it begins with`,
    async run() {
      const run = workflow.createWorkflow({ id: 's' }).then(say as never).commit().createRun() as WorkflowRun
      const result = await start(run, { inputData: 'one', initialState: { x: 1 }, requestContext: new heed.RequestContext({ who: 'me' }) })
      expect(result).toMatchObject({ result: ['one', { x: 1 }, 'me'] })
    },
  })),
  ...Object.entries(resumes).map(([name, resume]): Probe => ({
    title: `WorkflowRun.${name}: what it resumes`,
    async run() {
      const run = workflow.createWorkflow({ id: 'r' }).then(ask as never).commit().createRun() as WorkflowRun
      expect(await run.start()).toMatchObject({ status: 'suspended' })
      await expect(resume(run, { step: { id: 'other' }, resumeData: { n: 1 } })).rejects.toMatchObject({ code: 'run_not_suspended' })
      await expect(resume(run, { label: 'none', resumeData: { n: 1 } })).rejects.toBeInstanceOf(Error)
      expect(await resume(run, { step: 'ask', resumeData: { n: 10 } })).toMatchObject({ result: { n: 10 } })
    },
  })),
  {
    title: 'Workflow: its configuration',
    async run() {
      const made = new workflow.Workflow({ id: 'w', description: 'All.', metadata: { a: 1 }, inputSchema: number, outputSchema: number, stateSchema: seen })
      expect([made.id, made.description, made.metadata, made.inputSchema, made.outputSchema, made.stateSchema]).toEqual(['w', 'All.', { a: 1 }, number, number, seen])
      const tenants = new workflow.Workflow({ id: 'tenants', requestContextSchema: z.object({ tenant: z.string() }) }).map(() => 1).commit()
      await expect(tenants.createRun().start()).rejects.toMatchObject({ code: 'invalid_request_context' })
      let failed = 0
      const flaky = workflow.createStep({ id: 'flaky', inputSchema: number, execute: () => { if (++failed < 3) throw new Error('no') } })
      const retried = new workflow.Workflow({ id: 'retried', retryConfig: { attempts: 2, delay: 1 }, options: { validateInputs: false } }).map(() => 'no number').then(flaky as never).commit()
      expect(await retried.createRun().start()).toMatchObject({ status: 'success', steps: { flaky: { attempts: 3 } } })
      await rejects(() => new workflow.Workflow({ id: 'x', retryConfig: { attempts: 1, delay: -1 } }), 'delay')
    },
  },
]

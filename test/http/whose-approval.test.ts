import { expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

it('[H3.2] what an agent waits for is decided in its own name, and in that of no other', async () => {
  const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({ to: z.string() }), execute: () => 'paid' })
  const model = scriptedModel([{ toolCalls: [{ toolCallId: 'call-1', toolName: 'pay', input: { to: 'Ann' } }] }, 'Paid.'])
  const guide = new Agent({ id: 'guide', model, tools: { pay } })
  const { ask } = await served({ guide, other: new Agent({ id: 'other', model: scriptedModel(['No.']) }) })
  const post = async (path: string, json: object) => {
    const answer = await ask(path, { json })
    return [answer.status, ((await answer.json()) as { code?: string }).code]
  }
  await ask('/agents/guide/send-message', { json: { message: 'Pay.', ...thread } })
  await expect.poll(async () => (await guide.activeRun(thread))?.status).toBe('suspended')
  const { runId = '' } = (await guide.activeRun(thread)) ?? {}
  const refused = [409, 'run_not_suspended']
  for (const path of ['approve-tool-call', 'approve-tool-call-generate', 'decline-tool-call', 'decline-tool-call-generate']) expect(await post(`/agents/other/${path}`, { runId })).toEqual(refused)
  for (const path of ['resume-stream', 'resume-stream-until-idle']) expect(await post(`/agents/other/${path}`, { runId, resumeData: {} })).toEqual(refused)
  expect(await post('/agents/other/send-tool-approval', { ...thread, approved: true })).toEqual(refused)
  expect(await post('/agents/other/send-stream-resume', { ...thread, resumeData: {} })).toEqual(refused)
  expect((await guide.activeRun(thread))?.status).toBe('suspended')
  expect(await post('/agents/guide/approve-tool-call-generate', { runId })).toEqual([200, undefined])
})

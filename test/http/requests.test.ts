import { expect, it } from 'vitest'
import { Agent, createTool } from '../../src/index.ts'
import { apiKeys } from '../../src/http/auth/principal.ts'
import { HeedClient } from '../../src/client/index.ts'
import { WatchedThread } from '../../src/client/view/watched-thread.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const pay = (amount: number) => ({ toolCalls: [{ toolCallId: `p${amount}`, toolName: 'pay', input: { amount } }] })

/** A clerk who asks a buyer, who pays twice. */
function office() {
  const paid: unknown[] = []
  const tool = createTool({ id: 'pay', requireApproval: true, execute: (input) => (paid.push((input as { amount: number }).amount), 'paid') })
  const buyer = new Agent({ id: 'buyer', model: scriptedModel([pay(1), pay(1_000), 'Bought.']), tools: { pay: tool } })
  const clerk = new Agent({
    id: 'clerk', model: scriptedModel([{ toolCalls: [{ toolName: 'agent-buyer', toolCallId: 'ask', input: { prompt: 'Buy.' } }] }, 'Done.']), agents: { buyer },
  })
  return { clerk, paid }
}

interface Request {
  id: string
  digest: string
  args: unknown
}

it('[H1.10] a decision that names a request carries its digest back, and the answer names the principal', async () => {
  const { clerk, paid } = office()
  const key = 'a-long-and-random-key'
  const { ask } = await served({ clerk }, { auth: apiKeys({ [key]: { id: 'ann', resources: ['user-1'] } }) })
  const post = async (path: string, json: object) => {
    const answer = await ask(`/agents/clerk/${path}`, { json: { ...('runId' in json ? {} : thread), ...json }, headers: { authorization: `Bearer ${key}` } })
    return { status: answer.status, ...((await answer.json()) as { code?: string; details?: { field?: string }; decided?: object; runId?: string }) }
  }
  const request = async (): Promise<Request | undefined> => (await clerk.listSuspendedRuns()).runs[0]?.toolCalls[0]?.request
  await post('send-message', { message: 'Go.' })
  await expect.poll(request).toMatchObject({ args: { amount: 1 } })
  const first = (await request()) as Request
  const { runId } = (await clerk.activeRun(thread)) ?? {}
  for (const [path, more] of [['send-tool-approval', { approved: true }], ['send-stream-resume', { resumeData: 1 }], ['approve-tool-call', { runId }], ['decline-tool-call-generate', { runId }]] as const) {
    expect(await post(path, { approvalId: first.id, ...more })).toMatchObject({ status: 400, code: 'invalid_argument', details: { field: 'digest' } })
  }
  expect(await post('send-tool-approval', { approvalId: first.id, digest: 'another', approved: true })).toMatchObject({ status: 400, details: { field: 'digest' } })
  expect(await post('send-tool-approval', { approvalId: first.id, digest: first.digest, approved: true })).toMatchObject({
    status: 200, decided: { approvalId: first.id, approved: true, by: 'ann', at: expect.any(String) as string },
  })
  await expect.poll(request).toMatchObject({ args: { amount: 1_000 } })
  expect(await post('send-tool-approval', { toolCallId: 'ask', approved: true })).toMatchObject({ status: 400, details: { field: 'approvalId' } })
  expect(await post('send-tool-approval', { approvalId: first.id, digest: first.digest, approved: true })).toMatchObject({ status: 409, code: 'run_not_suspended' })
  expect(paid).toEqual([1])
})

it('[U1.7] a page shows the call that will run, and its decision is about the request that it showed', async () => {
  const { clerk, paid } = office()
  const { server } = await served({ clerk })
  const page = new WatchedThread(new HeedClient({ baseUrl: server.url }).getAgent('clerk'), thread)
  const leave = page.subscribe(() => {})
  await page.send('Go.')
  await expect.poll(() => page.getSnapshot().approvals).toMatchObject([{ toolCallId: 'ask', toolName: 'pay', args: { amount: 1 }, path: ['clerk', 'buyer', 'pay'] }])
  const [first] = page.getSnapshot().approvals
  await page.approve(first?.approvalId ?? '')
  await expect.poll(() => page.getSnapshot().approvals).toMatchObject([{ toolCallId: 'ask', args: { amount: 1_000 } }])
  await expect(page.approve(first?.approvalId ?? '')).rejects.toMatchObject({ code: 'run_not_suspended' })
  await page.decline('ask', 'Too dear.')
  await expect.poll(() => page.getSnapshot().status).toBe('idle')
  expect(paid).toEqual([1])
  leave()
})

import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Chunk } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from './places.ts'
import { idle, isType, readUntil } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

interface Shown {
  toolCallId: string
  request: { id: string; path: string[]; toolName: string; args: unknown; digest: string }
}

const shown = (chunk: Chunk | undefined) => (chunk as unknown as { payload: Shown }).payload
const pay = (amount: number) => ({ toolName: 'pay', toolCallId: `p${amount}`, input: { amount } })

/** A clerk who asks a buyer, who pays in two steps; and a tool that asks twice. */
function office() {
  const ran: unknown[] = []
  const buyer = new Agent({
    id: 'buyer',
    model: scriptedModel([{ toolCalls: [pay(1)] }, { toolCalls: [pay(1_000)] }, 'Bought.']),
    tools: { pay: createTool({ id: 'pay', requireApproval: true, execute: (input) => (ran.push((input as { amount: number }).amount), 'paid') }) },
  })
  const clerk = new Agent({
    id: 'clerk',
    model: scriptedModel([{ toolCalls: [{ toolName: 'agent-buyer', toolCallId: 'ask', input: { prompt: 'Buy.' } }] }, 'Done.']),
    agents: { buyer },
  })
  return { clerk, buyer, ran }
}

async function asked(agent: Agent) {
  const reader = (await agent.subscribeToThread(thread)).stream[Symbol.asyncIterator]()
  await agent.sendMessage('Go.', thread).outcome
  const next = async () => shown((await readUntil(reader, isType('tool-call-approval', 'tool-call-suspended'))).at(-1))
  return { first: await next(), next, reader }
}

describe.each(sharedPlaceKinds())('a request for a decision, $name', ({ make }) => {
  it('[R6.9] of an agent below shows what will run, and a second click does not approve the next request', async () => {
    const { clerk, ran } = office()
    openHeed({ clerk }, make().store())
    const { first, next } = await asked(clerk)
    expect(first).toMatchObject({ toolCallId: 'ask', request: { path: ['clerk', 'buyer', 'pay'], toolName: 'pay', args: { amount: 1 } } })
    const { runs } = await clerk.listSuspendedRuns({ threadId: 'thread-1' })
    expect(runs[0]?.toolCalls[0]?.request).toEqual(first.request)
    const click = { ...thread, approvalId: first.request.id, approved: true }
    await clerk.sendToolApproval(click)
    const second = await next()
    expect(second.request).toMatchObject({ path: ['clerk', 'buyer', 'pay'], args: { amount: 1_000 } })
    expect(second.request.id).not.toBe(first.request.id)
    await expect(clerk.sendToolApproval(click)).rejects.toMatchObject({ code: 'run_not_suspended' })
    for (const old of [{ toolCallId: 'ask' }, {}]) {
      await expect(clerk.sendToolApproval({ ...thread, ...old, approved: true })).rejects.toMatchObject({
        code: 'invalid_argument', details: { field: 'approvalId', approvalIds: [second.request.id] },
      })
    }
    expect(ran).toEqual([1])
    await clerk.sendToolApproval({ ...thread, approvalId: second.request.id, approved: false })
    await idle(clerk, thread)
    expect(ran).toEqual([1])
  })

  it('[R6.9] is decided on the child thread under the same id', async () => {
    const { clerk, buyer, ran } = office()
    openHeed({ clerk, buyer }, make().store())
    const { first, next } = await asked(clerk)
    const below = (await buyer.listSuspendedRuns()).runs[0]
    expect(below?.toolCalls[0]?.request).toMatchObject({ id: first.request.id, digest: first.request.digest, path: ['buyer', 'pay'] })
    const child = { threadId: below?.threadId ?? '', resourceId: 'user-1' }
    await buyer.sendToolApproval({ ...child, approvalId: first.request.id, digest: first.request.digest, approved: true })
    const second = await next()
    await buyer.sendToolApproval({ ...child, approvalId: second.request.id, approved: true })
    await idle(clerk, thread)
    expect(ran).toEqual([1, 1_000])
  })

  it('[R6.9] of a call that asks for data again has another id, which the decision has to name', async () => {
    const order = createTool({
      id: 'order',
      execute: (_, { resumeData, suspend }) => (resumeData === undefined || resumeData === 'L' ? suspend({ question: resumeData ?? 'first' }) : `ordered ${String(resumeData)}`),
    })
    const agent = new Agent({ id: 'shop', model: scriptedModel([{ toolCalls: [{ toolName: 'order', toolCallId: 'c1' }] }, 'Done.']), tools: { order } })
    openHeed({ agent }, make().store())
    const { first, next, reader } = await asked(agent)
    await agent.sendStreamResume({ ...thread, toolCallId: 'c1', resumeData: 'L' })
    const second = await next()
    await expect(agent.sendStreamResume({ ...thread, toolCallId: 'c1', resumeData: 'L' })).rejects.toMatchObject({ details: { field: 'approvalId' } })
    await expect(agent.sendStreamResume({ ...thread, approvalId: first.request.id, resumeData: 'L' })).rejects.toMatchObject({ code: 'run_not_suspended' })
    await agent.sendStreamResume({ ...thread, approvalId: second.request.id, digest: second.request.digest, resumeData: 'blue' })
    expect((await readUntil(reader, isType('tool-result'))).at(-1)).toMatchObject({ payload: { result: 'ordered blue' } })
  })

  it('[R6.9] of a later step whose provider gave the call the same id is not approved by a second click on the first', async () => {
    const ran: unknown[] = []
    const tool = createTool({ id: 'pay', requireApproval: true, execute: (input) => (ran.push((input as { amount: number }).amount), 'paid') })
    const steps = [1, 1_000].map((amount) => ({ toolCalls: [{ ...pay(amount), toolCallId: 'call_0' }] }))
    const agent = new Agent({ id: 'shop', model: scriptedModel([...steps, 'Done.', ...steps, 'Done.']), tools: { pay: tool } })
    openHeed({ agent }, make().store())
    const { first, next, reader } = await asked(agent)
    const click = { ...thread, toolCallId: 'call_0', approved: true }
    await agent.sendToolApproval(click)
    const second = await next()
    for (const old of [click, { ...thread, approved: true }, { ...click, runId: (await agent.activeRun(thread))!.runId }]) {
      await expect(agent.sendToolApproval(old)).rejects.toMatchObject({
        code: 'invalid_argument', details: { field: 'approvalId', approvalIds: [second.request.id] },
      })
    }
    await expect(agent.sendToolApproval({ ...thread, approvalId: first.request.id, approved: true })).rejects.toMatchObject({ code: 'run_not_suspended' })
    expect(ran).toEqual([1])
    await agent.sendToolApproval({ ...thread, approvalId: second.request.id, approved: false })
    await readUntil(reader, isType('finish'))
    // Of another run, the id names one call again.
    await agent.sendMessage('Again.', thread).outcome
    await next()
    await agent.sendToolApproval(click)
    await next()
    expect(ran).toEqual([1, 1])
  })

  it('[R6.9] rejects a decision with another digest, and hides the digest of hidden arguments', async () => {
    const secret = createTool({ id: 'pay', requireApproval: true, transform: { display: { input: () => ({}) } }, execute: () => 'paid' })
    const agent = new Agent({ id: 'shop', model: scriptedModel([{ toolCalls: [pay(1), { ...pay(1), toolCallId: 'again' }] }, 'Done.']), tools: { pay: secret } })
    openHeed({ agent }, make().store())
    const { first, next } = await asked(agent)
    const second = await next()
    expect([first.request.args, second.request.args]).toEqual([{}, {}])
    expect(first.request.digest).not.toBe(second.request.digest)
    const decision = { ...thread, approvalId: first.request.id, approved: true }
    await expect(agent.sendToolApproval({ ...decision, digest: second.request.digest })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'digest' } })
    await agent.sendToolApproval({ ...decision, digest: first.request.digest })
    await agent.sendToolApproval({ ...thread, approved: true })
    await idle(agent, thread)
  })

  it('[R6.10] that was decided tells a later decider what was decided, by whom and when', async () => {
    const { buyer, ran } = office()
    openHeed({ buyer }, make().store())
    const { first } = await asked(buyer)
    const decision = { ...thread, approvalId: first.request.id }
    const before = Date.now()
    const answer = await buyer.sendToolApproval({ ...decision, id: 'd1', approved: false, by: 'ann', declineContext: { reason: 'Too dear.' } })
    expect(answer).toMatchObject({ accepted: true, toolCallId: 'p1', decided: { approvalId: first.request.id, approved: false, by: 'ann', reason: 'Too dear.' } })
    expect(answer.decided.at.getTime()).toBeGreaterThanOrEqual(before)
    const repeated = await buyer.sendToolApproval({ ...decision, id: 'd1', approved: false, by: 'bob', declineContext: { reason: 'Too dear.' } })
    expect(repeated).toEqual(answer)
    await expect(buyer.sendToolApproval({ ...decision, approved: true, by: 'bob' })).rejects.toMatchObject({
      code: 'run_not_suspended', details: { decided: { approved: false, by: 'ann', at: answer.decided.at.toISOString() } },
      message: expect.stringContaining('declined by ann') as string,
    })
    expect(ran).toEqual([])
  })

  it.each(['above', 'below', 'both'] as const)('[R9.7] [R6.10] on two threads is decided once, first %s, and each thread tells what was decided', async (where) => {
    const { clerk, buyer, ran } = office()
    openHeed({ clerk, buyer }, make().store())
    const { first: { request } } = await asked(clerk)
    const child = { threadId: (await buyer.listSuspendedRuns()).runs[0]?.threadId ?? '', resourceId: 'user-1' }
    const decisions = {
      above: () => clerk.sendToolApproval({ ...thread, approvalId: request.id, approved: true, by: 'ann' }),
      below: () => buyer.sendToolApproval({ ...child, approvalId: request.id, approved: false, by: 'bob' }),
    }
    const first = where === 'both' ? await Promise.allSettled([decisions.above(), decisions.below()]) : await Promise.allSettled([decisions[where]()])
    const [made, ...more] = first.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value.decided] : []))
    expect([made, more]).toEqual([{ approvalId: request.id, approved: made?.by === 'ann', by: expect.any(String) as string, at: expect.any(Date) as Date }, []])
    for (const again of [decisions.above, decisions.below]) {
      await expect(again()).rejects.toMatchObject({ code: 'run_not_suspended', details: { decided: { ...made, at: made?.at.toISOString() } } })
    }
    await expect.poll(async () => (await clerk.listSuspendedRuns()).runs[0]?.toolCalls[0]?.request?.args).toEqual({ amount: 1_000 })
    expect(ran).toEqual(made?.by === 'ann' ? [1] : [])
  })
})

import { describe, expect, it } from 'vitest'
import { Agent, createTool } from '../../src/index.ts'
import { childDepth, childThreadId, threadsAbove } from '../../src/store/contract/thread-row.ts'
import type { Fence, Scope, StepCommit } from '../../src/store/contract/threads.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { faulty } from './faulty-store.ts'
import { openHeed, placeKinds, sharedPlaceKinds } from './places.ts'
import { idle, soon, texts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const memory = { thread: thread.threadId, resource: thread.resourceId }
const calls = (name: string) => ({ toolCalls: [{ toolName: `agent-${name}`, toolCallId: 'ask', input: { prompt: 'Go on.' } }] })

describe.each(placeKinds())('the thread of an agent below, $name', ({ make }) => {
  it('[R9.5] has an id that no caller can take, in any way that creates a thread', async () => {
    const buyer = new Agent({ id: 'buyer', model: scriptedModel(['Bought.']) })
    const clerk = new Agent({ id: 'clerk', model: scriptedModel([calls('buyer'), 'Done.']), agents: { buyer } })
    openHeed({ clerk }, make().store())
    const id = childThreadId('thread-1', 'ask')
    const taken = { code: 'invalid_argument', details: { field: 'threadId' } }
    const other = { threadId: id, resourceId: 'user-2' }
    await expect(clerk.sendMessage('Mine.', other).stored).rejects.toMatchObject(taken)
    await expect(clerk.generate('Mine.', { memory: { thread: id, resource: 'user-2' } })).rejects.toMatchObject(taken)
    const kept = await clerk.getMemory()
    await expect(kept.createThread(other)).rejects.toMatchObject(taken)
    await kept.createThread({ threadId: 'own', resourceId: 'user-2' })
    await expect(kept.cloneThread({ sourceThreadId: 'own', newThreadId: id })).rejects.toMatchObject(taken)
    // What used to be the id of the thread below belongs to its caller, and is not read.
    await kept.createThread({ threadId: 'thread-1/ask', resourceId: 'user-2' })
    expect((await clerk.generate('Go.', { memory })).toolResults).toMatchObject([{ result: { text: 'Bought.' } }])
    expect(await kept.getThreadById({ threadId: id })).toMatchObject({ resourceId: 'user-1' })
  })

  it('[R9.5] is another one for each thread and call, whatever their ids contain', () => {
    const ids = [
      childThreadId('a', 'b'), childThreadId('a/b', 'c'), childThreadId(childThreadId('a', 'b'), 'c'), childThreadId('a', 'b/c'),
      childThreadId('a%2Fb', 'c'), childThreadId('a', 'b%2Fc'),
    ]
    expect(new Set(ids).size).toBe(ids.length)
    expect(threadsAbove(childThreadId(childThreadId('a/b%', 'c/d'), 'e'))).toEqual([childThreadId('a/b%', 'c/d'), 'a/b%'])
    expect([childDepth('a/b'), childDepth(childThreadId(childThreadId('a/b', 'c'), 'd/e'))]).toEqual([0, 2])
  })

  it.each([[undefined, 8], [2, 2]])('[R9.6] ends agents that ask themselves without end, with maxAgentDepth %s', async (maxAgentDepth, depth) => {
    for (const place of [{ memory }, {}]) {
      const model = scriptedModel(({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? `Told: ${texts(prompt).at(-1)}` : calls('self')))
      const self: Agent = new Agent({ id: 'self', model, agents: () => ({ self }), ...(maxAgentDepth === undefined ? {} : { maxAgentDepth }) })
      openHeed({ self }, make().store())
      const { text } = await self.generate('Go.', place)
      expect(text).toContain(`agents have called agents ${depth} times in a row`)
      expect(model.callCount).toBe(2 * (depth + 1))
    }
  })

  it('[R9.6] a tool that awaits generate() on its own thread, or on the thread above, is refused by name', async () => {
    const tried: unknown[] = []
    const again = createTool({
      id: 'again',
      execute: async () => {
        const answer = await clerk.generate('And?', { memory }).catch((error: unknown) => error)
        tried.push(answer)
        if (answer instanceof Error) throw answer
        return 'answered'
      },
    })
    const useAgain = { toolCalls: [{ toolName: 'again', toolCallId: 'again', input: {} }] }
    const buyer = new Agent({ id: 'buyer', model: scriptedModel([useAgain, 'Below.']), tools: { again } })
    const clerk: Agent = new Agent({ id: 'clerk', model: scriptedModel([useAgain, calls('buyer'), 'Done.']), tools: { again }, agents: { buyer } }) as Agent
    openHeed({ clerk, buyer }, make().store())
    expect((await clerk.generate('Go.', { memory })).text).toBe('Done.')
    expect(tried).toMatchObject([{ code: 'waits_for_itself' }, { code: 'waits_for_itself' }])
  })

  it('[R9.6] a tool may send to its own thread, call another one, and call its own after it has returned', async () => {
    const later = Promise.withResolvers<string>()
    const write = createTool({
      id: 'write',
      execute: async () => {
        clerk.queueMessage('Next.', thread)
        // Started by the tool, and awaited by nothing: it goes on after the tool has returned.
        void idle(clerk, thread).then(() => clerk.generate('Later.', { memory })).then(({ text }) => later.resolve(text), later.reject)
        return (await clerk.generate('Elsewhere.', { memory: { thread: 'thread-2', resource: 'user-1' } })).text
      },
    })
    const model = scriptedModel(({ prompt }) => {
      const said = texts(prompt).at(-1) ?? ''
      return said.includes('Go.') ? { toolCalls: [{ toolName: 'write', toolCallId: 'w', input: {} }] } : `Answer to ${said}`
    })
    const clerk: Agent = new Agent({ id: 'clerk', model, tools: { write } }) as Agent
    openHeed({ clerk }, make().store())
    expect((await clerk.generate('Go.', { memory })).toolResults).toMatchObject([{ result: 'Answer to user: Elsewhere.' }])
    expect(await later.promise).toBe('Answer to user: Later.')
  })
})

/** What the model answers after so many results of tools. */
const byResults = (...answers: Array<string | ScriptedStep>) =>
  scriptedModel(({ prompt }) => answers[prompt.filter(({ role }) => role === 'tool').length] ?? 'Nothing more.')

describe.each(sharedPlaceKinds())('a request of an agent below, $name', ({ make }) => {
  it('[R6.9] is shown on the thread above as it waits, also if the call asked again in another process before it was read', async () => {
    const pays = (sum: number) => ({ toolCalls: [{ toolName: 'pay', toolCallId: `pay-${sum}`, input: { sum } }] })
    const agents = () => {
      const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
      const buyer = new Agent({ id: 'buyer', model: byResults(pays(1), pays(2), 'Bought.'), tools: { pay } })
      const clerk = new Agent({ id: 'clerk', model: byResults(calls('buyer'), 'Done.'), agents: { buyer } })
      return { chief: new Agent({ id: 'chief', model: byResults(calls('clerk'), 'All done.'), agents: { clerk } }), clerk, buyer }
    }
    const place = make()
    const { store, on } = faulty(place.store())
    const here = agents()
    const there = agents()
    openHeed(here, store)
    openHeed(there, place.store())
    const clerkThread = { ...thread, threadId: childThreadId(thread.threadId, 'ask') }
    const buyerThread = { ...thread, threadId: childThreadId(clerkThread.threadId, 'ask') }

    // The run above reads the run below only after that has asked a second time, in the other process.
    const askedAgain = Promise.withResolvers<void>()
    let isSuspended = false
    let reads = 0
    on('commitStep', (args) => {
      const [{ threadId }, { end }] = args as [Fence, StepCommit]
      isSuspended ||= threadId === clerkThread.threadId && end?.status === 'suspended'
      return undefined
    })
    on('getRun', ([scope]) => (isSuspended && (scope as Scope).threadId === clerkThread.threadId && reads++ === 0 ? askedAgain.promise : undefined))
    const requestOf = async (agent: Agent, { threadId }: Scope) => (await agent.listSuspendedRuns({ threadId })).runs[0]?.toolCalls[0]?.request
    await here.chief.sendMessage('Go.', thread).outcome
    await soon(() => reads).toBe(1)
    await there.buyer.sendToolApproval({ ...buyerThread, toolCallId: 'pay-1', approved: true })
    await soon(() => requestOf(there.clerk, clerkThread)).toMatchObject({ args: { sum: 2 } })
    askedAgain.resolve()

    await soon(async () => (await here.chief.activeRun(thread))?.status).toBe('suspended')
    const request = await requestOf(here.chief, thread)
    expect(request).toMatchObject({ args: { sum: 2 }, path: ['chief', 'clerk', 'buyer', 'pay'] })
    const { decided } = await here.chief.sendToolApproval({ ...thread, approvalId: request?.id ?? '', digest: request?.digest ?? '', approved: true })
    expect(decided).toMatchObject({ approved: true, approvalId: request?.id })
    await idle(here.chief, thread)
  })
})

import { describe, expect, it } from 'vitest'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel, virtualClock, type Script } from '../../src/testing/index.ts'
import { mortal, openHeed, sharedPlaceKinds } from './places.ts'
import { idle, soon, texts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

/** An agent whose calls wait: `pay` for an approval, `order` for data. `ran` has each execution after the decision. */
function shop(script: Script, options: { ran?: string[]; needs?: () => boolean } = {}) {
  const ran = options.ran ?? []
  const asked: string[] = []
  const model = scriptedModel(script)
  const agent = new Agent({
    id: 'shop',
    model,
    tools: {
      pay: createTool({ id: 'pay', requireApproval: options.needs ?? true, execute: () => (ran.push('pay'), 'paid') }),
      order: createTool({
        id: 'order',
        execute: (_, { resumeData, suspend }) => (resumeData === undefined ? (asked.push('order'), suspend({ question: 'Size?' })) : (ran.push('order'), 'ordered')),
      }),
      write: createTool({ id: 'write', execute: () => (ran.push('write'), 'written') }),
    },
  })
  return { agent, model, ran, asked }
}

const suspended = (agent: Agent) => soon(async () => (await agent.activeRun(thread))?.status).toBe('suspended')
const unknown = 'It is not known whether it took effect'

describe.each(sharedPlaceKinds())('a call that was decided and had not begun, $name', ({ make }) => {
  it.each(['pay', 'order'] as const)('[R6.8] begins after its process closed: %s', async (toolName) => {
    for (let round = 0; round < 8; round++) {
      const place = make()
      const before = shop([{ toolCalls: [{ toolName, toolCallId: 'c1', input: {} }] }, 'Done.'])
      const first = openHeed({ agent: before.agent }, place.store())
      await before.agent.sendMessage('Buy it.', thread).outcome
      await suspended(before.agent)
      if (toolName === 'pay') await before.agent.sendToolApproval({ ...thread, approved: true })
      else await before.agent.sendStreamResume({ ...thread, resumeData: { size: 'L' } })
      await first.close()

      const begunBefore = before.ran.length
      const { agent, model, ran } = shop(['Done.'])
      await openHeed({ agent }, place.store()).start()
      await idle(agent, thread)
      expect([...before.ran, ...ran]).toEqual([toolName])
      const interrupted = model.calls.some(({ prompt }) => texts(prompt).join().includes(unknown))
      expect(interrupted && begunBefore === 0).toBe(false)
    }
  })

  it.each(['pay', 'order', 'write'] as const)('[R6.8] begins in the next process if its own is closed while it stores that the call begins: %s', async (toolName) => {
    const place = make()
    const before = shop([{ toolCalls: [{ toolName, toolCallId: 'c1', input: {} }] }])
    const store = place.store()
    const first = openHeed({ agent: before.agent }, store)
    const commitStep = store.commitStep.bind(store)
    const closing = Promise.withResolvers<void>()
    store.commitStep = async (fence, commit) => {
      // A call that needs no decision begins at once; `order` then asks.
      const begins = commit.started?.includes('c1') && (toolName !== 'order' || before.asked.length > 0)
      if (begins) first.close().then(closing.resolve, closing.reject)
      return commitStep(fence, commit)
    }
    before.agent.sendMessage('Buy it.', thread)
    if (toolName !== 'write') {
      await suspended(before.agent)
      if (toolName === 'pay') await before.agent.sendToolApproval({ ...thread, approved: true })
      else await before.agent.sendStreamResume({ ...thread, resumeData: { size: 'L' } })
    }
    await closing.promise

    const { agent, model, ran } = shop(['Done.'])
    await openHeed({ agent }, place.store()).start()
    await idle(agent, thread)
    expect([before.ran, ran]).toEqual([[], [toolName]])
    expect(texts(model.calls[0]?.prompt ?? []).join()).not.toContain(unknown)
  })

  it.each(['approved', 'declined'] as const)('[R6.8] is carried out after its process was killed: %s', async (decision) => {
    const clock = virtualClock()
    const place = make({ clock })
    const before = shop([{ toolCalls: [{ toolName: 'pay', toolCallId: 'c1', input: {} }] }])
    const { store, die } = mortal(place.store())
    const first = openHeed({ agent: before.agent }, store, { clock })
    await before.agent.sendMessage('Buy it.', thread).outcome
    await suspended(before.agent)
    const decided = store.decide.bind(store)
    store.decide = async (...given) => {
      const answer = await decided(...given)
      die()
      return answer
    }
    await before.agent.sendToolApproval({ ...thread, approved: decision === 'approved' })
    await first.close()
    await clock.advance(11_000)

    const { agent, model, ran } = shop(['Done.'])
    await openHeed({ agent }, place.store(), { clock }).start()
    await idle(agent, thread)
    expect([before.ran, ran]).toEqual([[], decision === 'approved' ? ['pay'] : []])
    expect(texts(model.calls[0]?.prompt ?? []).at(-1)).toContain(decision === 'approved' ? 'paid' : 'execution-denied')
  })

  it('[R6.8] waits for its decision if the process was killed before the suspension was stored', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    const { store, die } = mortal(place.store())
    const before = shop([{ toolCalls: [{ toolName: 'pay', toolCallId: 'c1', input: {} }] }], { needs: () => (die(), true) })
    const first = openHeed({ agent: before.agent }, store, { clock })
    await before.agent.sendMessage('Buy it.', thread).stored
    await soon(() => before.model.callCount).toBe(1)
    await first.close()
    await clock.advance(11_000)

    const { agent, model, ran } = shop(['Done.'])
    await openHeed({ agent }, place.store(), { clock }).start()
    await suspended(agent)
    await agent.sendToolApproval({ ...thread, approved: true })
    await idle(agent, thread)
    expect([before.ran, ran]).toEqual([[], ['pay']])
    expect(texts(model.calls[0]?.prompt ?? []).join()).not.toContain(unknown)
  })

  it('[R6.8] is interrupted if it had begun, also where no approval was needed', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    const { store, die } = mortal(place.store())
    const began: string[] = []
    const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', toolCallId: 'c1', input: {} }] }])
    const pay = createTool({ id: 'pay', requireApproval: () => false, execute: () => (began.push('pay'), die(), 'paid') })
    const dying = new Agent({ id: 'shop', model, tools: { pay } })
    const first = openHeed({ agent: dying }, store, { clock })
    await dying.sendMessage('Buy it.', thread).stored
    await soon(() => began.length).toBe(1)
    await first.close()
    await clock.advance(11_000)

    const after = shop(['I shall check.'], { needs: () => false })
    await openHeed({ agent: after.agent }, place.store(), { clock }).start()
    await idle(after.agent, thread)
    expect(after.ran).toEqual([])
    expect(texts(after.model.calls[0]?.prompt ?? []).at(-1)).toContain(unknown)
  })
})

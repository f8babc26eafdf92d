import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, Memory, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const thread = { threadId: 'thread-1', resourceId: 'user-1' }

function opened(memory: () => Memory | Promise<Memory>) {
  const model = scriptedModel(['Hello.'], { loop: true })
  const agent = new Agent({ id: 'guide', model, memory })
  return { agent, model, heed: new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger }) }
}

const failing: Array<{ name: string; code: string | undefined; memory: () => Memory | Promise<Memory> }> = [
  { name: 'throws', code: undefined, memory: () => { throw new Error('no tenant') } },
  { name: 'rejects', code: undefined, memory: async () => { throw new Error('no tenant') } },
  { name: 'answers something else', code: 'invalid_agent', memory: () => 3 as unknown as Memory },
]

describe.each(failing)('a memory function that $name', ({ memory, code }) => {
  it('makes every kind of send return a receipt with the error as outcome', async () => {
    const { agent, model, heed } = opened(memory)
    const keeping = { ...thread, ifIdle: { behavior: 'persist' as const } }
    const receipts = [agent.sendMessage('Go.', thread), agent.queueMessage('Go.', thread), agent.sendSignal({ type: 'system-reminder', contents: 'Go.' }, thread), agent.sendMessage('Go.', keeping)]
    for (const receipt of receipts) {
      expect(receipt.accepted).toBe(true)
      expect(await receipt.outcome).toMatchObject({ action: 'rejected', ...(code === undefined ? {} : { code }) })
    }
    await expect(receipts.at(-1)?.persisted).rejects.toBeInstanceOf(Error)
    expect(agent.abortThreadStream(thread)).toBe(false)
    expect(model.callCount).toBe(0)
    await heed.close()
  })
})

it('a throwing and a rejecting memory function have the same outcome', async () => {
  const [thrown, rejected] = await Promise.all(failing.slice(0, 2).map(({ memory }) => opened(memory).agent.sendMessage('Go.', thread).outcome))
  expect(thrown).toEqual(rejected)
})

it('a missing memory is reported only by the receipt of its own send while an earlier send is in flight', async () => {
  const slow = Promise.withResolvers<Memory>()
  let found = true
  const { agent, heed } = opened(() => (found ? slow.promise : Promise.reject(new Error('no tenant'))))
  const unhandled: unknown[] = []
  const onUnhandled = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', onUnhandled)
  try {
    const first = agent.sendMessage('One.', { ...thread, ifIdle: { behavior: 'persist' } })
    found = false
    const second = agent.sendMessage('Two.', thread)
    found = true
    // Node reports unhandled rejections after the turn of the event loop in which they happened.
    await new Promise((resolve) => setImmediate(resolve))
    slow.resolve(new Memory())
    expect(await first.outcome).toMatchObject({ action: 'persisted' })
    expect(await second.outcome).toMatchObject({ action: 'rejected' })
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', onUnhandled)
    await heed.close()
  }
})

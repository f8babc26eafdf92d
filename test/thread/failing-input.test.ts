import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, isHeedError, silentLogger, type HeedError, type Message, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const memory = { thread: 't', resource: 'u' }
const isBad = ({ content }: Message) => content.parts.some((part) => part.type === 'text' && part.text.includes('bad'))
const picky: Processor = {
  id: 'picky',
  processInput: ({ messages }) => {
    if (messages.some(isBad)) throw new Error('too large')
    return messages
  },
}

async function failure(work: Promise<unknown>): Promise<HeedError> {
  const error = await work.then(() => expect.fail('did not fail'), (thrown: unknown) => thrown)
  if (!isHeedError(error)) throw error
  return error
}

describe('a processInput that throws for one message', () => {
  it('is reported with the message id, in later runs too, until the message is deleted', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.'], { loop: true }), inputProcessors: [picky] })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    const first = await failure(agent.generate('bad', { memory }))
    const kept = await agent.getMemory()
    const bad = (await kept.recall({ threadId: 't' })).messages.find(isBad)?.id ?? 'none'
    expect(first).toMatchObject({ code: 'processor_failed', details: { processorId: 'picky', hook: 'processInput', messageIds: [bad] } })
    expect(first.message).not.toContain('deleteMessages')
    const second = await failure(agent.generate('good', { memory }))
    expect(second).toMatchObject({ code: 'processor_failed', details: { processorId: 'picky', hook: 'processInput', messageIds: [bad] } })
    expect(second.message).toContain('deleteMessages')
    await kept.deleteMessages({ threadId: 't', messageIds: [bad] })
    expect((await agent.generate('good', { memory })).text).toBe('Hello.')
    await heed.close()
  })
})

import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Memory } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from '../http/serving.ts'
import { newFile } from '../new-file.ts'
import { openHeed } from '../thread/places.ts'
import { texts } from '../thread/said.ts'

const ask = { memory: { thread: 'new', resource: 'ada' } }

/** A database with messages that were stored before anything used recall. */
async function imported(count: number, ...last: string[]): Promise<LibSQLStore> {
  const store = new LibSQLStore({ url: `file:${newFile()}` })
  onTestFinished(() => store.close())
  const memory = new Memory({ storage: store })
  await memory.createThread({ threadId: 'old', resourceId: 'ada' })
  for (let start = 0; start < count; start += 2_000) {
    const length = Math.min(2_000, count - start)
    const messages = Array.from({ length }, (_, at) => ({ id: `m-${start + at}`, role: 'user' as const, content: `Remark ${start + at} on tea.` }))
    await memory.saveMessages({ threadId: 'old', messages })
  }
  if (last.length > 0) await memory.saveMessages({ threadId: 'old', messages: last.map((content, at) => ({ id: `last-${at}`, role: 'user', content })) })
  return store
}

describe('the first search after an import', () => {
  it('[K1.1] finds every message: the index is made before it', async () => {
    const memory = new Memory({ storage: await imported(2_000, 'The gazelle is called Ada.') })
    const search = () => memory.recall({ threadId: 'old', vectorSearchString: 'gazelle', threadConfig: { semanticRecall: { messageRange: 0 } } })
    const first = await search()
    expect(first.hits?.[0]?.messageId).toBe('last-0')
    expect(first.incomplete).toBeUndefined()
    expect(await search()).toEqual(first)
  })

  it('[K1.1] gives the first run of an agent its evidence', async () => {
    const model = scriptedModel(['Ada.'])
    const agent = new Agent({ id: 'clerk', model, memory: new Memory() })
    openHeed({ agent }, await imported(2_000, 'The gazelle is called Ada.'))
    await agent.generate('What is the gazelle called?', ask)
    expect(texts(model.calls[0]?.prompt ?? []).join('\n')).toContain('The gazelle is called Ada.')
  })

  it('[K1.17] that cannot read more than 10,000 messages says so: in its result, over HTTP, and in the block of the prompt', async () => {
    const store = await imported(11_500)
    const model = scriptedModel(['Tea.'])
    const agent = new Agent({ id: 'clerk', model, memory: new Memory() })
    const { client } = await served({ agent }, { storage: store })
    const found = await client.memory({ agentId: 'clerk', resourceId: 'ada' }).search({ searchQuery: 'remark 7' })
    expect(found).toMatchObject({ incomplete: true, incompleteReason: 'indexing' })
    const memory = await agent.getMemory()
    await expect.poll(async () => (await memory.recallStatus()).rebuilding).toBeUndefined()
    expect((await memory.recall({ threadId: 'old', vectorSearchString: 'Remark 11499' })).incomplete).toBeUndefined()
    await agent.generate('What was remark 11499 on?', ask)
    expect(texts(model.calls[0]?.prompt ?? []).join('\n')).not.toContain('Not all messages')
  })

  it('[K1.17] the block of a run says that messages are missing', async () => {
    const model = scriptedModel(['Tea.'])
    const agent = new Agent({ id: 'clerk', model, memory: new Memory() })
    openHeed({ agent }, await imported(11_500))
    await agent.generate('What was remark 7 on?', ask)
    const block = texts(model.calls[0]?.prompt ?? []).find((text) => text.startsWith('user: <recalled-messages>'))
    expect(block).toContain('Remark 7 on tea.')
    expect(block).toContain('Not all messages could be searched yet')
  })
})

import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type MemoryConfig } from '../../src/index.ts'
import type { Processor } from '../../src/processors/processor.ts'
import { estimateTokens } from '../../src/prompt/tokens.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
import type { ThreadStore } from '../../src/store/contract/threads.ts'
import { recallIndexOf } from '../../src/store/contract/storage.ts'
import { openHeed, placeKinds, type Place } from '../thread/places.ts'
import { texts } from '../thread/said.ts'

const ask = (thread: string) => ({ memory: { thread, resource: 'user-7' } })
const blocks = (prompt: LanguageModelV4Prompt | undefined) => texts(prompt ?? []).filter((text) => text.startsWith('user: <recalled-messages>')).map((text) => text.slice(6))

async function desk(place: Place, config: MemoryConfig = {}, script: Script = () => 'ok') {
  const model = scriptedModel(script)
  const agent = new Agent({ id: 'clerk', instructions: 'Be brief.', model, memory: new Memory(config) })
  openHeed({ agent }, place.store())
  const memory = await agent.getMemory()
  const say = async (threadId: string, list: readonly string[], prefix = threadId) => {
    await memory.createThread({ threadId, resourceId: 'user-7' })
    await memory.saveMessages({ threadId, messages: list.map((content, at) => ({ id: `${prefix}-${at}`, role: at % 2 === 0 ? 'user' as const : 'assistant' as const, content })) })
  }
  const asked = async (text: string, thread: string) => {
    await agent.generate(text, ask(thread))
    return blocks(model.calls.at(-1)?.prompt)
  }
  return { agent, model, memory, say, asked }
}

describe.each(placeKinds())('the content of a recall block, $name', ({ make }) => {
  it('[K2.8] topK counts messages: a long one with many matching passages displaces no other', async () => {
    const { memory, say } = await desk(make())
    await say('doc', [Array.from({ length: 60 }, (_, at) => `Section ${at}: the apollo project budget was discussed. ${'Many other matters of the day. '.repeat(27)}`).join('\n')])
    await say('chat', ['Apollo launch moved to Friday.', 'Who pays for the apollo party?', 'The budget is 5000.', 'apollo needs a budget owner', 'I like tea', 'ok'])
    const { hits = [] } = await memory.recall({ threadId: 'chat', vectorSearchString: 'apollo project budget', threadConfig: { semanticRecall: { topK: 4, messageRange: 0 } } })
    expect(hits.map(({ messageId }) => messageId)).toHaveLength(4)
    expect(new Set(hits.map(({ messageId }) => messageId))).toContain('doc-0')
    expect(new Set(hits.map(({ messageId }) => messageId)).size).toBe(4)
  })

  it('[K2.9] messages of other threads that have the same ids are other messages', async () => {
    const { say, asked } = await desk(make(), { semanticRecall: { topK: 1, messageRange: 0 } })
    await say('one', ['The falcon is called Ada.', 'ok'], 'm')
    await say('two', ['The walrus is called Bob.', 'ok'], 'm')
    expect((await asked('What is the falcon called?', 'x')).at(-1)).toContain('Ada')
    const shown = await asked('What is the walrus called?', 'x')
    expect(shown).toHaveLength(2)
    expect(shown[1]).toContain('Bob')
  })

  it.each([0, 5, 12, 20])('[K2.10] shows of a long message the passage that was found, however long that is (%i sentences before it)', async (tail) => {
    const { say, asked } = await desk(make())
    await say('long', [`${'We spoke of many things that day. '.repeat(1_176)}${'And more was said of the sea. '.repeat(tail)}The spare key is under the flowerpot.`, 'ok'])
    const [shown = ''] = await asked('Where is the spare key? Under the flowerpot?', 'q')
    expect(shown).toContain('The spare key is under the flowerpot.')
    expect(shown.length).toBeLessThan(2_000)
  })

  it('[K2.10] also where passages are longer than what is shown', async () => {
    const { say, asked } = await desk(make())
    const before = 'We spoke of many things that day. '.repeat(20_000)
    await say('long', [`${before}${'And more of the sea. '.repeat(60)}The spare key is under the flowerpot. ${'And more of the sea. '.repeat(9)}`, 'ok'])
    expect((await asked('Where is the spare key? Under the flowerpot?', 'q'))[0]).toContain('The spare key is under the flowerpot.')
  })

  it('[K2.10] another passage of a message is quoted when a question needs it, and none twice', async () => {
    const { say, asked } = await desk(make(), { semanticRecall: { topK: 1 } })
    const pages = ['The spare key is under the flowerpot.', 'The falcon is called Ada.'].map((text) => `${'We spoke of many things that day. '.repeat(60)}${text} `)
    await say('long', [pages.join(''), 'ok'])
    expect((await asked('Where is the spare key, flowerpot?', 'q')).join()).toContain('under the flowerpot.')
    const both = await asked('What is the falcon called, Ada?', 'q')
    expect(both).toHaveLength(2)
    expect(both[1]).toContain('The falcon is called Ada.')
    expect(both[1]).not.toContain('under the flowerpot.')
    expect(await asked('The spare key, under the flowerpot?', 'q')).toEqual(both)
  })

  const filler = (at: number) => `Point ${at} of the apollo budget talk. ${'It went on for a while with details of this and that. '.repeat(24)}`

  it('[K2.11] what was found is shown before its neighbors, and shortened rather than left out', async () => {
    const { say, asked } = await desk(make())
    for (let thread = 0; thread < 20; thread += 1) await say(`noise-${thread}`, Array.from({ length: 10 }, (_, at) => `Small talk ${thread} ${at} on weather, tea and cats.`))
    await say('t', Array.from({ length: 12 }, (_, at) => filler(at)))
    const [shown = ''] = await asked('What was said of the apollo budget?', 'q')
    expect(shown.match(/Point \d+ of the apollo budget talk/g)?.length).toBeGreaterThanOrEqual(5)
    expect(estimateTokens(shown)).toBeLessThanOrEqual(2_000)
  })

  it.each([1, 2, 3, 4, 50])('[K2.11] long neighbors, %i on each side, displace no hit', async (messageRange) => {
    const { say, asked } = await desk(make(), { semanticRecall: { topK: 1, messageRange } })
    await say('t', Array.from({ length: 12 }, (_, at) => (at === 6 ? 'The falcon is called Ada.' : filler(at))))
    const [shown = ''] = await asked('What is the falcon called?', 'q')
    expect(shown).toContain('The falcon is called Ada.')
    expect(shown).toContain('Point 5')
    expect(estimateTokens(shown)).toBeLessThanOrEqual(2_000)
  })

  it('[K2.11] a small budget has the best hit, excerpted at the terms of the question', async () => {
    const { say, asked } = await desk(make(), { semanticRecall: { maxTokens: 70 } })
    await say('t', [`${'It rained. '.repeat(60)}The falcon is called Ada. ${'It rained. '.repeat(40)}`, 'ok'])
    const [shown = ''] = await asked('What is the falcon called?', 'q')
    expect(shown).toContain('The falcon is called Ada.')
    expect(estimateTokens(shown)).toBeLessThanOrEqual(70)
  })
})

describe.each(placeKinds())('clones of threads, $name', ({ make }) => {
  it('[K2.2] a copy is not shown what its window holds, and of several copies one is shown, once', async () => {
    const { agent, memory, asked } = await desk(make())
    await agent.generate('The spare key is under the flowerpot.', ask('source'))
    await memory.cloneThread({ sourceThreadId: 'source', newThreadId: 'copy' })
    expect(await asked('Where is the spare key, flowerpot?', 'copy')).toEqual([])
    for (const at of [1, 2, 3]) await memory.cloneThread({ sourceThreadId: 'copy', newThreadId: `copy-${at}` })
    const [shown = ''] = await asked('The spare key?', 'fresh')
    expect(shown.match(/The spare key is under the flowerpot/g)).toHaveLength(1)
    expect(shown.match(/Where is the spare key, flowerpot/g)).toHaveLength(1)
    expect(await asked('The spare key, again?', 'fresh')).toEqual([shown])
  })
})

describe.each(placeKinds())('the messages that a recall block may quote, $name', ({ make }) => {
  it('[K2.12] leaves out rows that a run of another thread may still undo, also of peers, and quotes sealed ones', async () => {
    const place = make()
    const looked = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const guard: Processor = {
      id: 'guard',
      async processOutputResult({ messages, abort }) {
        if (!JSON.stringify(messages).includes('FORBIDDEN')) return messages
        reached.resolve()
        await looked.promise
        return abort('no')
      },
    }
    const guarded = new Agent({
      id: 'guarded', instructions: 'x', memory: new Memory(), outputProcessors: [guard],
      tools: { look: createTool({ id: 'look', description: 'x', inputSchema: { type: 'object' }, execute: async () => ({ secret: 'TOOLSECRET' }) }) },
      model: scriptedModel(({ prompt }) => {
        if (prompt.at(-1)?.role === 'tool') return 'FORBIDDEN answer'
        return JSON.stringify(prompt.at(-1)).includes('dangerous') ? { text: 'INNER plan of the falcon', toolCalls: [{ toolName: 'look', input: {} }] } : 'ok'
      }),
    })
    const model = scriptedModel(() => 'ok2')
    const plain = new Agent({ id: 'plain', instructions: 'x', model, memory: new Memory({ semanticRecall: { messageRange: 3 } }) })
    openHeed({ guarded, plain }, place.store())
    await guarded.generate('The falcon is called Ada.', ask('A'))
    const run = guarded.generate('dangerous wish', ask('A'))
    await reached.promise
    await plain.generate('What is the falcon called?', ask('B'))
    const memory = await plain.getMemory()
    const { messages } = await memory.recall({ threadId: 'A', vectorSearchString: 'falcon', threadConfig: { semanticRecall: { messageRange: 3 } } })
    looked.resolve()
    expect((await run).tripwire).toMatchObject({ reason: 'no' })
    const [shown = ''] = blocks(model.calls[0]?.prompt)
    expect(shown).toContain('The falcon is called Ada.')
    expect(JSON.stringify([shown, messages])).not.toMatch(/dangerous|INNER|TOOLSECRET|FORBIDDEN/)
    await plain.generate('And?', ask('B'))
    expect(blocks(model.calls[1]?.prompt)).toEqual([shown])
  })

  it.each([
    ['deleted', (store: ThreadStore, id: string) => store.deleteMessages({ threadId: 'A' }, [id])],
    ['changed', (store: ThreadStore, id: string) => store.updateMessages([{ scope: { threadId: 'A' }, patches: [{ id, content: { parts: [{ type: 'text', text: 'The code of the gate is secret.' }] } }] }])],
    ['given away', (store: ThreadStore) => store.transferThread({ threadId: 'A' }, 'user-8')],
  ] as const)('[K2.3] a block is neither stored nor shown when a message that it quotes is %s before it is stored', async (_, change) => {
    const base = make().store()
    let armed: (() => Promise<unknown>) | undefined
    const store = new Proxy<ThreadStore>(base, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key)
        if (typeof value !== 'function') return value
        return (...given: unknown[]): unknown => {
          const go = (): unknown => Reflect.apply(value, target, given)
          if (!armed || !JSON.stringify(given).includes('recalled-messages')) return go()
          const first = armed
          armed = undefined
          return first().then(go)
        }
      },
    })
    const { agent, memory, asked } = await desk({ store: () => store })
    await agent.generate('The code of the gate is 4711.', ask('A'))
    const { messages: [first] } = await memory.recall({ threadId: 'A' })
    armed = () => change(base, first?.id ?? '')
    expect(await asked('What is the code of the gate?', 'B')).toEqual([])
    expect(armed).toBeUndefined()
    expect(await asked('And later?', 'B')).toEqual([])
  })

  it.each([['emptied', ' '], ['changed', 'Of the gate nothing is said.']])('[K2.3] a message that is %s between search and read is not quoted with its former text', async (_, text) => {
    const store = make().store()
    const { agent, memory, asked } = await desk({ store: () => store }, { semanticRecall: { maxTokens: 32, messageRange: 0 } })
    await agent.generate('The code of the gate is 4711.', ask('A'))
    const { messages: [first] } = await memory.recall({ threadId: 'A' })
    const index = await recallIndexOf(store)
    if (!index || !first) throw new Error('There is nothing to look for.')
    const search = index.search.bind(index)
    let found = 0
    index.search = async (query) => {
      const hits = await search(query)
      found += hits.length
      await memory.updateMessages({ messages: [{ id: first.id, threadId: 'A', content: { parts: [{ type: 'text', text }] } }] })
      return hits
    }
    expect((await asked('What is the code of the gate?', 'B')).join()).not.toContain('4711')
    expect(found).toBeGreaterThan(0)
  })

  it('[K2.3] a message that is changed takes along the blocks that quote its old words; new metadata alone do not', async () => {
    const { agent, memory, asked } = await desk(make(), { lastMessages: 2 })
    await agent.generate('The code of the gate is 4711.', ask('A'))
    for (const text of ['Buy milk.', 'Fine weather.', 'Call Bob.']) await agent.generate(text, ask('A'))
    const { messages: [first] } = await memory.recall({ threadId: 'A', perPage: false })
    const id = first?.id ?? ''
    expect((await asked('What is the code of the gate?', 'A')).join()).toContain('4711')
    const shown = await asked('What is the code of the gate?', 'B')
    expect(shown).toHaveLength(1)
    await memory.updateMessages({ messages: [{ id, threadId: 'A', content: { metadata: { seen: true } } }] })
    expect(await asked('And later?', 'B')).toEqual(shown)
    await memory.updateMessages({ messages: [{ id, threadId: 'A', content: { parts: [{ type: 'text', text: 'The code of the gate is secret.' }] } }] })
    for (const thread of ['A', 'B']) expect((await asked('Bye.', thread)).join()).not.toContain('4711')
  })
})

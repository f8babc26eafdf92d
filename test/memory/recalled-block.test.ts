import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { Agent, Memory, type MemoryConfig } from '../../src/index.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
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

describe.each(placeKinds())('what a block of recalled messages shows, $name', ({ make }) => {
  it('[K2.8] topK counts messages: a long one that fits with every passage takes the place of none', async () => {
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
})

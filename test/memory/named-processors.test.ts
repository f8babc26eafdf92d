import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Agent, InMemoryStore, Memory, type AgentConfig, type Message } from '../../src/index.ts'
import { MessageHistory, SemanticRecall, TokenLimiter, type Processor } from '../../src/processors/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { thrownBy } from '../agent/asking.ts'
import { openHeed } from '../thread/places.ts'
import { userTexts } from '../thread/said.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-named-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0
const newFile = () => `file:${join(folder, `${files++}.db`)}`

const where = { thread: 'chat-1', resource: 'user-7' }
const target = { threadId: where.thread, resourceId: where.resource }

/** Asks `count` times and answers what users said in the last prompt. */
async function lastPrompt(config: Partial<AgentConfig>, count: number, options: object = {}): Promise<string[]> {
  const model = scriptedModel(() => 'Yes.')
  const agent = new Agent({ id: 'clerk', model, ...config })
  const memory = config.memory instanceof Memory ? config.memory.storage : undefined
  const heed = openHeed({ agent }, new InMemoryStore())
  for (let turn = 1; turn <= count; turn++) await agent.generate(`question ${turn}`, { memory: where, ...options })
  await heed.close()
  if (memory && 'close' in memory) await memory.close()
  return userTexts(model.calls.at(-1))
}

describe('a MessageHistory that was given by hand', () => {
  it('[G3.1] replaces the automatic one, and the prompt has history once', async () => {
    // Recall would bring back what history leaves out.
    const memory = () => new Memory({ lastMessages: 2, semanticRecall: false })
    const automatic = await lastPrompt({ memory: memory() }, 6)
    expect(automatic).toEqual(['question 5', 'question 6'])
    const byHand = await lastPrompt({ memory: memory(), inputProcessors: [new MessageHistory({ lastMessages: 20 })] }, 6)
    expect(byHand).toEqual(['question 1', 'question 2', 'question 3', 'question 4', 'question 5', 'question 6'])
  })

  it('[G3.1] works with its own storage and a TokenLimiter behind it', async () => {
    const url = newFile()
    const history = new MessageHistory({ storage: new LibSQLStore({ id: 'memory-store', url }), lastMessages: 20 })
    const seen: number[] = []
    const counter: Processor = { id: 'counter', processInputStep: ({ messages }) => void seen.push(messages.length) }
    const prompt = await lastPrompt({
      memory: new Memory({ storage: new LibSQLStore({ id: 'memory-store', url }), lastMessages: 2 }),
      inputProcessors: [history, counter, new TokenLimiter({ limit: 20 })],
    }, 8)
    expect(seen.at(-1)).toBe(15)
    expect(prompt.length).toBeLessThan(8)
    expect(prompt.at(-1)).toBe('question 8')
  })

  it('[G3.1] sets the storage of threads when nothing else does', async () => {
    const url = newFile()
    await lastPrompt({ inputProcessors: [new MessageHistory({ storage: new LibSQLStore({ url }) })] }, 1)
    const store = new LibSQLStore({ url })
    expect((await store.listRows(target, { limit: 10 })).rows).toHaveLength(2)
    await store.close()
  })

  it.each([
    ['a call', {}, { inputProcessors: [new MessageHistory({ lastMessages: 20 })] }],
    ['outputProcessors', { outputProcessors: [new MessageHistory({ lastMessages: 20 })] }, {}],
    ['a function of the request', { inputProcessors: () => [new MessageHistory({ lastMessages: 20 })] }, {}],
  ])('[G3.1] counts in %s too', async (_, config, options) => {
    expect(await lastPrompt({ memory: new Memory({ window: { low: 2, high: 2 } }), ...config }, 6, options)).toHaveLength(6)
  })

  it('[G3.1] yields to the options of a call, and a foreign processor with its id disables the automatic one', async () => {
    const inputProcessors = [new MessageHistory({ lastMessages: 20 })]
    const own = { memory: { ...where, options: { lastMessages: 2 } } }
    expect(await lastPrompt({ inputProcessors }, 6, own)).toEqual(['question 5', 'question 6'])
    expect(await lastPrompt({ inputProcessors: [{ id: 'message-history' }] }, 3)).toEqual(['question 3'])
  })

  it('[G3.2] is rejected when its options are invalid', () => {
    const model = scriptedModel([])
    const [one, other] = [new InMemoryStore(), new InMemoryStore()]
    const two = () => new Agent({ id: 'a', model, memory: new Memory({ storage: one }), inputProcessors: [new MessageHistory({ storage: other })] })
    expect(thrownBy(two)).toMatchObject({ code: 'invalid_agent', details: { option: 'storage' } })
    const twice = () => new Agent({ id: 'a', model, inputProcessors: [new MessageHistory(), new MessageHistory()] })
    expect(thrownBy(twice)).toMatchObject({ code: 'invalid_agent', details: { processor: 'message-history' } })
    expect(thrownBy(() => new MessageHistory({ lastMessages: 0 }))).toMatchObject({ code: 'invalid_argument', details: { option: 'lastMessages' } })
    const unknown = { newest: 10 } as object
    expect(thrownBy(() => new MessageHistory(unknown))).toMatchObject({ code: 'unsupported_option', details: { option: 'newest' } })
    expect(thrownBy(() => new SemanticRecall({ storage: {} } as never))).toMatchObject({ code: 'unsupported_option', details: { option: 'storage' } })
  })
})

describe('guardrails and memory', () => {
  const said = (messages: readonly Message[]) => messages.map(({ content }) => content.parts.map((part) => (part.type === 'text' ? part.text : '')).join(''))

  it.each([['by itself', []], ['by hand', [new MessageHistory({ lastMessages: 5 })]]])(
    '[G3.3] history is loaded %s before input is looked at; a refusal calls no model and stores nothing',
    async (_, own) => {
      const remembered: string[][] = []
      const validator: Processor = {
        id: 'validator',
        processInput({ messages, messageList, abort }) {
          remembered.push(said(messageList.get.remembered.db()))
          if (said(messages).includes('bad')) abort('not that')
        },
      }
      const model = scriptedModel(['Hello.'])
      const agent = new Agent({ id: 'clerk', model, memory: new Memory({ lastMessages: 10 }), inputProcessors: [validator, ...own] })
      openHeed({ agent }, new InMemoryStore())
      await agent.generate('good', { memory: where })
      const refused = await agent.generate('bad', { memory: where })
      expect(refused.tripwire?.reason).toBe('not that')
      expect(model.calls).toHaveLength(1)
      expect(remembered).toEqual([[], ['good', 'Hello.']])
      expect(said((await (await agent.getMemory()).recall(target)).messages)).toEqual(['good', 'Hello.'])
    },
  )

  it.each([['by itself', []], ['by hand', [new MessageHistory({ lastMessages: 5 })]]])(
    '[G3.4] an answer is stored %s after the last guardrail let it pass; a refusal stores nothing',
    async (_, own) => {
      const stored: number[] = []
      const blocker: Processor = {
        id: 'blocker',
        async processOutputResult({ messages, abort }) {
          const { messages: kept } = await (await agent.getMemory()).recall(target)
          stored.push(kept.filter(({ role }) => role === 'assistant').length)
          if (said(messages).includes('Something bad.')) abort('blocked')
        },
      }
      const model = scriptedModel(['Fine.', 'Something bad.'])
      const agent = new Agent({ id: 'clerk', model, memory: new Memory({ lastMessages: 10 }), outputProcessors: [...own, blocker] })
      openHeed({ agent }, new InMemoryStore())
      await agent.generate('first', { memory: where })
      const refused = await agent.generate('second', { memory: where })
      expect(refused.tripwire?.reason).toBe('blocked')
      expect(stored).toEqual([0, 1])
      expect(said((await (await agent.getMemory()).recall(target)).messages)).toEqual(['first', 'Fine.'])
    },
  )
})

describe('the limit of a MessageHistory', () => {
  it('[G3.2] is its lastMessages, and not both', () => {
    expect(new MessageHistory({ limit: 7 }).options).toEqual({ lastMessages: 7 })
    expect(() => new MessageHistory({ limit: 7, lastMessages: 8 })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
    expect(() => new MessageHistory({ limit: 0 })).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })
})

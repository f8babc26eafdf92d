import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, type Message, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const text = (message: Message) => message.content.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

describe('the result of processInput', () => {
  async function talk(processor: Processor) {
    const model = scriptedModel(['one', 'two'])
    const agent = new Agent({ id: 'a', model, inputProcessors: [processor] })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const memory = { thread: 't', resource: 'u' }
    await agent.generate(['my secret', 'hello'], { memory })
    await agent.generate('again', { memory })
    const { messages } = await (await agent.getMemory()).recall({ threadId: 't', perPage: false })
    await heed.close()
    const [first, second] = model.calls.map((call) => call.prompt)
    expect(second?.slice(0, first?.length), 'the second prompt begins with the first').toEqual(first)
    return { prompts: JSON.stringify(model.calls.map((call) => call.prompt)), history: messages.map(text) }
  }

  it('[P1.2] keeps removed input out of history and of every later prompt', async () => {
    const { prompts, history } = await talk({ id: 'drop', processInput: ({ messages }) => messages.filter((message) => !text(message).includes('secret')) })
    expect(prompts).not.toContain('secret')
    expect(history).toEqual(['hello', 'one', 'again', 'two'])
  })

  it('[P1.2] keeps added messages in history and in every later prompt', async () => {
    const note = (): Message => ({ id: crypto.randomUUID(), role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'a note' }] } })
    let added = false
    const { history } = await talk({
      id: 'add',
      processInput({ messages }) {
        if (added) return undefined
        added = true
        return [note(), ...messages]
      },
    })
    expect(history).toEqual(['my secret', 'hello', 'a note', 'one', 'again', 'two'])
  })

  it('stores changed input as changed', async () => {
    const { prompts, history } = await talk({
      id: 'change',
      processInput: ({ messages }) => messages.map((message) => ({ ...message, content: { ...message.content, parts: [{ type: 'text', text: text(message).replace('secret', '***') }] } })),
    })
    expect(prompts).not.toContain('secret')
    expect(history[0]).toBe('my ***')
  })
})

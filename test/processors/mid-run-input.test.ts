import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Message, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { gate, idle, userTexts } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const text = (message: Message) => message.content.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
const withText = (message: Message, words: string): Message => ({ ...message, content: { ...message.content, parts: [{ type: 'text', text: words }] } })
const note = (): Message => ({ id: crypto.randomUUID(), role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'A note.' }] } })

interface Seen {
  messages: string[]
  role: string[]
  input: number
}

describe.each(placeKinds())('input that enters a running loop, $name', ({ make }) => {
  /** Sends these together: as what starts a run, or while one is at work. Answers what the processor saw of them, the model read and history has. */
  async function send(words: string[], when: 'start' | 'mid-run', processInput: NonNullable<Processor['processInput']>) {
    const seen: Seen[] = []
    const processor: Processor = {
      id: 'p',
      processInput(args) {
        if (text(args.messages[0] as Message) === 'Begin.') return undefined
        seen.push({ messages: args.messages.map(text), role: args.messages.map(({ role }) => role), input: args.messageList.get.input.db().length })
        return processInput(args)
      },
    }
    const inside = gate()
    const hold = gate()
    const wait = createTool({ id: 'wait', execute: () => (inside.open(), hold.promise.then(() => 'waited')) })
    const model = scriptedModel(({ prompt }) => (when === 'mid-run' && !prompt.some(({ role }) => role === 'tool') ? { toolCalls: [{ toolName: 'wait' }] } : 'Done.'))
    const agent = new Agent({ id: 'a', model, tools: { wait }, inputProcessors: [processor] })
    openHeed({ agent }, make().store())
    if (when === 'mid-run') {
      agent.sendMessage('Begin.', thread)
      await inside.promise
    }
    const receipts = words.map((contents, index) => agent.sendMessage({ id: `s${index}`, contents }, thread))
    await Promise.all(receipts.map(({ stored }) => stored))
    hold.open()
    const outcomes = await Promise.all(receipts.map(({ outcome }) => outcome))
    await idle(agent, thread)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    const states = await Promise.all(words.map(async (_, index) => (await agent.explain({ ...thread, signalId: `s${index}` }))?.state))
    const read = userTexts(model.calls.at(-1)).filter((words) => words !== 'Begin.')
    const stored = messages.filter(({ role }) => role !== 'assistant').map(text).filter((words) => words !== 'Begin.')
    return { seen, read, stored, states, actions: outcomes.map(({ action }) => action), calls: model.callCount }
  }

  const both = async (words: string[], processInput: NonNullable<Processor['processInput']>) => {
    const [start, middle] = [await send(words, 'start', processInput), await send(words, 'mid-run', processInput)]
    const what = ({ seen, read, stored, states }: Awaited<ReturnType<typeof send>>) => ({ seen, read, stored, states })
    expect(what(middle)).toEqual(what(start))
    return middle
  }

  it('[G2.5] is seen by processInput as what starts one is: all of a moment at once', async () => {
    const { seen, read } = await both(['One.'], () => undefined)
    expect(seen).toEqual([{ messages: ['One.'], role: ['user'], input: 1 }])
    expect(read).toEqual(['One.'])
    const several = await send(['One.', 'Two.', 'Three.'], 'mid-run', () => undefined)
    expect(several.seen).toEqual([{ messages: ['One.', 'Two.', 'Three.'], role: ['user', 'user', 'user'], input: 3 }])
    expect(several.actions).toEqual(['delivered', 'delivered', 'delivered'])
  })

  it('[G2.5] is changed as what starts one is', async () => {
    const { read, stored } = await both(['My secret.'], ({ messages }) => messages.map((message) => withText(message, text(message).replace('secret', '***'))))
    expect([read, stored]).toEqual([['My ***.'], ['My ***.']])
  })

  it('[G2.5] is taken out and added to as what starts one is', async () => {
    const { read, stored } = await both(['One.'], ({ messages }) => [...messages, note()])
    expect([read, stored]).toEqual([['One.', 'A note.'], ['One.', 'A note.']])
    const several = await send(['One.', 'My secret.', 'Three.'], 'mid-run', ({ messages }) => messages.filter((message) => !text(message).includes('secret')))
    expect([several.read, several.stored]).toEqual([['One.', 'Three.'], ['One.', 'Three.']])
  })

  it('[G2.5] is refused as what starts one is, and what was there before it stays', async () => {
    const { stored, states, calls } = await both(['My secret.'], ({ abort }) => abort('no'))
    expect([stored, states, calls]).toEqual([[], ['rejected'], 1])
  })
})

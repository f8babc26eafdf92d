import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Message, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { gate, idle } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } as const
const look = createTool({ id: 'look', execute: () => 'seen' })
const elsewhere = createTool({ id: 'elsewhere' })
const never = new Promise<void>(() => {})

const guard: Processor = {
  id: 'guard',
  processOutputResult: ({ messages, abort }) => (JSON.stringify(messages).includes('SECRET') ? abort('blocked') : undefined),
}
const redacting: Processor = {
  id: 'redacting',
  processOutputResult: ({ messages }) => messages.map((message) => ({ ...message, content: JSON.parse(JSON.stringify(message.content).replaceAll('SECRET', '***')) as Message['content'] })),
}

async function stored(agent: Agent): Promise<Message[]> {
  return (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages
}

const words = (messages: Message[]) => messages.map(({ content }) => content.parts.map((part) => (part.type === 'text' ? part.text : '')).join(''))

describe.each(placeKinds())('the output since input last entered, $name', ({ make }) => {
  const ends = [
    { how: 'at maxSteps', options: { maxSteps: 1 }, tool: 'look' },
    { how: 'by stopWhen', options: { stopWhen: () => true }, tool: 'look' },
    { how: 'at a call that runs elsewhere', options: {}, tool: 'elsewhere' },
    { how: 'without the shape that was asked for', options: { structuredOutput: { schema } }, tool: undefined },
  ]
  const spoken = (tool: string | undefined) => scriptedModel(() => (tool === undefined ? 'SECRET' : { text: 'SECRET', toolCalls: [{ toolName: tool }] }))

  it.each(ends)('[R7.5] is refused when the run ends $how', async ({ options, tool }) => {
    const agent = new Agent({ id: 'a', model: spoken(tool), tools: { look, elsewhere }, outputProcessors: [guard] })
    openHeed({ agent }, make().store())
    const result = await agent.generate('Go.', { memory, ...options })
    expect(result.tripwire?.reason).toBe('blocked')
    expect(await stored(agent)).toEqual([])
  })

  it.each(ends)('[R7.5] is changed in all its steps when the run ends $how', async ({ options, tool }) => {
    const agent = new Agent({ id: 'a', model: spoken(tool), tools: { look, elsewhere }, outputProcessors: [redacting] })
    openHeed({ agent }, make().store())
    const result = await agent.generate('Go.', { memory, ...options }).catch((error: unknown) => error)
    expect(JSON.stringify(result)).not.toContain('SECRET')
    const messages = await stored(agent)
    expect(words(messages).join('')).toContain('***')
    expect(JSON.stringify(messages)).not.toContain('SECRET')
  })

  it('[R7.5] is changed in steps that were stored before, in history, in the result and in the next prompt', async () => {
    const model = scriptedModel([{ text: 'SECRET one', toolCalls: [{ toolName: 'look' }] }, 'SECRET two', 'Next.'])
    const agent = new Agent({ id: 'a', model, tools: { look }, outputProcessors: [redacting] })
    openHeed({ agent }, make().store())
    const result = await agent.generate('Go.', { memory })
    expect([result.text, result.steps.map(({ text }) => text)]).toEqual(['*** two', ['*** one', '*** two']])
    expect(words(await stored(agent))).toEqual(['Go.', '*** one*** two'])
    await agent.generate('On.', { memory })
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('SECRET')
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('seen')
  })

  it.each([{ how: 'aborted', more: [] }, { how: 'interrupted', more: ['Stop that.', 'Fine.'] }])('[R7.5] is refused when its stream is $how', async ({ how, more }) => {
    const model = scriptedModel([{ text: ['SECRET ', 'words'], gate: { parts: 3, until: never } }, 'Fine.'])
    const agent = new Agent({ id: 'a', model, outputProcessors: [guard] })
    openHeed({ agent }, make().store())
    const stop = new AbortController()
    const stream = await agent.stream('Go.', { memory, abortSignal: stop.signal })
    for await (const _ of stream.textStream) {
      if (how === 'aborted') stop.abort()
      else agent.sendMessage('Stop that.', { ...thread, ifActive: { behavior: 'interrupt' } })
      break
    }
    expect(await stream.tripwire).toMatchObject({ reason: 'blocked' })
    await idle(agent, thread)
    expect(words(await stored(agent))).toEqual(more)
  })

  const careful = createTool({ id: 'careful', requireApproval: true, execute: () => 'done' })

  it('[R7.5] is refused before its run waits for a decision: nothing waits then', async () => {
    const agent = new Agent({ id: 'a', model: spoken('careful'), tools: { careful }, outputProcessors: [guard] })
    openHeed({ agent }, make().store())
    expect((await agent.generate('Go.', { memory })).tripwire?.reason).toBe('blocked')
    expect(await stored(agent)).toEqual([])
    expect((await agent.listSuspendedRuns(thread)).runs).toEqual([])
    expect(await agent.activeRun(thread)).toBeNull()
  })

  it('[R7.5] is changed before its run waits for a decision, and once', async () => {
    let asked = 0
    const counting: Processor = { id: 'counting', processOutputResult: (args) => (asked++, redacting.processOutputResult?.(args)) }
    const model = scriptedModel([{ text: 'SECRET one', toolCalls: [{ toolName: 'careful' }] }, 'SECRET two'])
    const agent = new Agent({ id: 'a', model, tools: { careful }, outputProcessors: [counting] })
    openHeed({ agent }, make().store())
    const waiting = await agent.generate('Go.', { memory })
    expect([waiting.finishReason, asked]).toEqual(['suspended', 1])
    expect(words(await stored(agent))).toEqual(['Go.', '*** one'])
    await (await agent.approveToolCall({ runId: waiting.runId })).result
    expect(words(await stored(agent))).toEqual(['Go.', '*** one*** two'])
    expect(JSON.stringify([await stored(agent), model.calls.at(-1)?.prompt])).not.toContain('SECRET')
  })

  const breaks = { text: ['SECRET ', 'words'], errorAfter: { parts: 3, error: { status: 400, message: 'gone' } } }

  it('[R7.5] is refused when its stream fails permanently, and when another model continues from there', async () => {
    const lost = new Agent({ id: 'a', model: scriptedModel([breaks]), outputProcessors: [guard] })
    openHeed({ lost }, make().store())
    expect((await lost.generate('Go.', { memory })).tripwire?.reason).toBe('blocked')
    expect(await stored(lost)).toEqual([])
    const second = scriptedModel(['and so on.'])
    const found = new Agent({ id: 'a', model: [scriptedModel([breaks]), second], outputProcessors: [guard] })
    openHeed({ found }, make().store())
    expect((await found.generate('Go.', { memory })).tripwire?.reason).toBe('blocked')
    expect([second.callCount, await stored(found)]).toEqual([1, []])
  })

  it('[R7.5] is changed when its stream fails permanently, and when another model continues from there', async () => {
    const lost = new Agent({ id: 'a', model: scriptedModel([breaks]), outputProcessors: [redacting] })
    openHeed({ lost }, make().store())
    const error = await lost.generate('Go.', { memory }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'stream_broken' })
    expect(words(await stored(lost))[1]).toMatch(/^\*\*\* /)
    const found = new Agent({ id: 'a', model: [scriptedModel([breaks]), scriptedModel(['and so on.'])], outputProcessors: [redacting] })
    openHeed({ found }, make().store())
    const result = await found.generate('Go.', { memory })
    expect(result.text).toMatch(/^\*\*\* .*and so on\.$/)
    expect(words(await stored(found))[1]).toBe(result.text)
    expect(JSON.stringify([error, result, await stored(lost), await stored(found)])).not.toContain('SECRET')
  })

  it('[R7.5] is refused before input enters after it; that input is answered next', async () => {
    const tell = createTool({ id: 'tell', execute: async () => (await agent.sendMessage({ id: 'mid', contents: 'Also this.' }, thread).stored, 'told') })
    const model = scriptedModel([{ text: 'SECRET', toolCalls: [{ toolName: 'tell' }] }, 'Fine.'])
    const agent: Agent = new Agent({ id: 'a', model, tools: { tell }, outputProcessors: [guard] })
    openHeed({ agent }, make().store())
    expect((await agent.generate('Go.', { memory })).tripwire?.reason).toBe('blocked')
    await idle(agent, thread)
    expect(words(await stored(agent))).toEqual(['Also this.', 'Fine.'])
    expect(await agent.explain({ ...thread, signalId: 'mid' })).toMatchObject({ state: 'consumed' })
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('SECRET')
  })

  it('[R7.5] is called once each time that input enters, with the output since the last input', async () => {
    const seen: string[][] = []
    const watch: Processor = { id: 'watch', processOutputResult: ({ messages }) => void seen.push(words(messages)) }
    const tell = createTool({ id: 'tell', execute: async () => (await agent.sendMessage('Also this.', thread).stored, 'told') })
    const model = scriptedModel([{ text: 'One.', toolCalls: [{ toolName: 'look' }] }, { text: 'Two.', toolCalls: [{ toolName: 'tell' }] }, 'Three.'])
    const agent: Agent = new Agent({ id: 'a', model, tools: { look, tell }, outputProcessors: [watch] })
    openHeed({ agent }, make().store())
    await agent.generate('Go.', { memory })
    expect(seen).toEqual([['One.Two.'], ['Three.']])
  })

  it('[R7.6] leaves calls and results, and no words, when it could not be looked at', async () => {
    const broken: Processor = { id: 'broken', processOutputResult: () => { throw new Error('down') } }
    const agent = new Agent({ id: 'a', model: spoken('look'), tools: { look }, outputProcessors: [broken] })
    openHeed({ agent }, make().store())
    await expect(agent.generate('Go.', { memory, maxSteps: 2 })).rejects.toMatchObject({ code: 'processor_failed' })
    const kept = JSON.stringify(await stored(agent))
    expect(kept).not.toContain('SECRET')
    expect(kept.split('"result":"seen"')).toHaveLength(3)
  })

  it('[R7.6] leaves the input that arrived after it pending, to be answered next, when it could not be looked at', async () => {
    const [looking, look] = [gate(), gate()]
    let looks = 0
    const broken: Processor = {
      id: 'broken',
      async processOutputResult() {
        if (++looks > 1) return
        looking.open()
        await look.promise
        throw new Error('broken')
      },
    }
    const model = scriptedModel(['One.', 'Two.'])
    const agent = new Agent({ id: 'a', model, outputProcessors: [broken] })
    openHeed({ agent }, make().store())
    const one = agent.sendMessage('One', thread)
    await looking.promise
    const two = agent.sendMessage('Two', thread)
    await two.stored
    look.open()
    expect(await two.outcome).toMatchObject({ action: 'woke' })
    await idle(agent, thread)
    expect(await agent.explain({ ...thread, signalId: one.signal.id })).toMatchObject({ run: { status: 'failed' } })
    expect(model.callCount).toBe(2)
  })

  it('[R7.6] leaves no words when the run is aborted while it is looked at', async () => {
    const inside = gate()
    const slow: Processor = { id: 'slow', processOutputResult: () => (inside.open(), never) }
    const agent = new Agent({ id: 'a', model: scriptedModel(['SECRET']), outputProcessors: [slow] })
    openHeed({ agent }, make().store())
    const stop = new AbortController()
    const asked = agent.generate('Go.', { memory, abortSignal: stop.signal })
    await inside.promise
    stop.abort()
    await expect(asked).rejects.toMatchObject({ code: 'aborted' })
    expect(JSON.stringify(await stored(agent))).not.toContain('SECRET')
  })

  it('[R7.5] is what an object is made of', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel([JSON.stringify({ a: 'SECRET' })]), outputProcessors: [redacting] })
    openHeed({ agent }, make().store())
    const result = await agent.generate('Go.', { memory, structuredOutput: { schema } })
    expect(result.object).toEqual({ a: '***' })
  })
})

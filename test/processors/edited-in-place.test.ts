import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Message, type MessagePart, type ModelConfig, type Processor, type ToolsInput } from '../../src/index.ts'
import { providerServer, scriptedModel, type Script } from '../../src/testing/index.ts'
import { fileKind, openHeed } from '../thread/places.ts'

const memory = { thread: 't', resource: 'u' }
const hide = (text: string) => text.replaceAll('hunter2', '***')

/** Changes the texts of messages in place. */
function hideIn(messages: readonly Message[]): void {
  for (const { content } of messages) for (const part of content.parts) if (part.type === 'text') part.text = hide(part.text)
}

const place = fileKind()

function open(processor: Processor | Processor[], script: Script, tools: ToolsInput = {}) {
  const model = scriptedModel(script)
  return { model, ...openWith(processor, model, tools) }
}

function openWith(processor: Processor | Processor[], model: ModelConfig, tools: ToolsInput = {}) {
  const processors = Array.isArray(processor) ? processor : [processor]
  const agent = new Agent({ id: 'a', model, tools, inputProcessors: processors, outputProcessors: processors })
  openHeed({ agent }, place.make().store())
  const stored = async () => JSON.stringify((await (await agent.getMemory()).recall({ threadId: 't', resourceId: 'u', perPage: false })).messages)
  return { agent, stored }
}

/** Each way in which a hook may leave the messages that it changed in place. */
const ways: Array<[string, (args: { messages: Message[]; messageList: { get: { all: { db(): Message[] } } } }) => unknown]> = [
  ['returns nothing', ({ messages }) => hideIn(messages)],
  ['returns the array', ({ messages }) => (hideIn(messages), messages)],
  ['returns another array of the same messages', ({ messages }) => messages.map((message) => (hideIn([message]), message))],
  ['returns them in an object', ({ messages }) => (hideIn(messages), { messages })],
  ['returns the list', ({ messages, messageList }) => (hideIn(messages), messageList)],
  ['changed the messages of the list', ({ messageList }) => hideIn(messageList.get.all.db())],
  ['changed those of the list after it read them', ({ messages, messageList }) => (messageList.get.all.db(), hideIn(messages))],
  ['returns a promise', async ({ messages }) => hideIn(await Promise.resolve(messages))],
]

describe.each(ways)('[G2.42] a hook that changes messages in place and %s', (way, change) => {
  it('processInput: the model reads and the store keeps what it left', async () => {
    const { agent, model, stored } = open({ id: 'p', processInput: change } as unknown as Processor, ['Fine.', 'Still.'])
    await agent.generate('My password is hunter2.', { memory })
    await agent.generate('Again: hunter2.', { memory })
    expect(JSON.stringify(model.calls)).toContain('My password is ***.')
    expect(JSON.stringify(model.calls)).not.toContain('hunter2')
    expect(await stored()).toContain('Again: ***.')
    expect(await stored()).not.toContain('hunter2')
  })

  it('processInput: as a signal of a user', async () => {
    const { agent, model, stored } = open({ id: 'p', processInput: change } as unknown as Processor, ['Fine.'])
    const { stream } = await agent.subscribeToThread({ threadId: 't', resourceId: 'u' })
    agent.sendMessage('My password is hunter2.', { threadId: 't', resourceId: 'u' })
    for await (const chunk of stream) if (chunk.type === 'finish') break
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('My password is ***.')
    expect(await stored()).not.toContain('hunter2')
  })

  it('processInputStep: the model reads it, in every step, and history stays', async () => {
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const steps: Script = [{ toolCalls: [{ toolName: 'look' }] }, 'Fine.', 'Still.']
    const { agent, model, stored } = open({ id: 'p', processInputStep: change } as unknown as Processor, steps, { look })
    await agent.generate('My password is hunter2.', { memory })
    await agent.generate('And?', { memory })
    expect(model.calls).toHaveLength(3)
    for (const { prompt } of model.calls) expect(JSON.stringify(prompt)).toContain('My password is ***.')
    expect(JSON.stringify(model.calls)).not.toContain('hunter2')
    expect(await stored()).toContain('My password is hunter2.')
  })

  it.each(way === 'returns them in an object' ? [] : (['processOutputStep', 'processOutputResult'] as const))('%s: text, steps, the store and the next prompt', async (hook) => {
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const steps: Script = [{ text: 'It is hunter2.', toolCalls: [{ toolName: 'look' }] }, 'I said hunter2.', 'Yes.']
    const { agent, model, stored } = open({ id: 'p', [hook]: change } as unknown as Processor, steps, { look })
    const { text, steps: made } = await agent.generate('Say it.', { memory })
    expect(text).toBe('I said ***.')
    expect(made.map((step) => step.text)).toEqual(['It is ***.', 'I said ***.'])
    expect(await stored()).not.toContain('hunter2')
    await agent.generate('Again?', { memory })
    expect(JSON.stringify(model.calls[2]?.prompt)).toContain('I said ***.')
    expect(JSON.stringify(model.calls[2]?.prompt)).not.toContain('hunter2')
  })
})

describe('[G2.42] what a hook changes in place', () => {
  it('returned messages: an array that it changed and returned has what it added and lacks what it removed', async () => {
    const added: Message = { id: 'added', role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'Added.' }] } }
    const processor: Processor = { id: 'p', processInput: ({ messages }) => (messages.splice(0, 1, added), messages) }
    const { agent, model, stored } = open(processor, ['Fine.'])
    await agent.generate('My password is hunter2.', { memory })
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('Added.')
    expect(JSON.stringify(model.calls[0]?.prompt)).not.toContain('hunter2')
    expect(await stored()).not.toContain('hunter2')
  })

  it('is what the hooks after it receive, in messages, in the list and in its prompt', async () => {
    const seen: string[] = []
    const first: Processor = { id: 'first', processInput: ({ messages }) => hideIn(messages), processInputStep: ({ messages }) => hideIn(messages) }
    const note = ({ messages, messageList }: { messages: Message[]; messageList: { get: { all: { prompt(): unknown } } } }) => {
      seen.push(JSON.stringify([messages, messageList.get.all.prompt()]))
    }
    const second: Processor = { id: 'second', processInput: note, processInputStep: note }
    const { agent } = open([first, second], ['Fine.'])
    await agent.generate('My password is hunter2.', { memory })
    expect(seen).toHaveLength(2)
    for (const one of seen) {
      expect(one.match(/My password is \*\*\*\./g)).toHaveLength(2)
      expect(one).not.toContain('hunter2')
    }
  })

  it('is combined with what the next hook returns, or changes in place', async () => {
    const replace = (from: string, to: string, copy: boolean): Processor => ({
      id: from,
      processOutputStep({ messages }) {
        const changed = copy ? structuredClone(messages) : messages
        for (const { content } of changed) for (const part of content.parts) if (part.type === 'text') part.text = part.text.replace(from, to)
        return copy ? changed : undefined
      },
    })
    const { agent, stored } = open([replace('one', '1', false), replace('two', '2', true), replace('three', '3', false)], ['one two three'])
    expect((await agent.generate('Count.', { memory })).text).toBe('1 2 3')
    expect(await stored()).toContain('1 2 3')
  })

  it('of a chunk is what subscribers read, what is stored, and text', async () => {
    const processor: Processor = {
      id: 'p',
      processOutputStream({ part }) {
        if (part.type === 'text-delta') part.payload.text = hide(part.payload.text)
      },
    }
    const { agent, stored } = open(processor, [{ text: ['It is ', 'hunter2', '.'] }])
    const stream = await agent.stream('Say it.', { memory })
    let shown = ''
    for await (const chunk of stream.fullStream) if (chunk.type === 'text-delta') shown += chunk.payload.text
    expect([shown, await stream.text]).toEqual(['It is ***.', 'It is ***.'])
    expect(await stored()).not.toContain('hunter2')
  })

  it('of a chunk with a file or a source is stored', async () => {
    const processor: Processor = {
      id: 'p',
      processOutputStream({ part }) {
        if (part.type === 'source') part.payload.url = 'https://example.com/public'
      },
    }
    const parts = [{ type: 'source' as const, sourceType: 'url' as const, id: 's', url: 'https://example.com/hunter2' }, { type: 'text-delta' as const, id: '1', delta: 'See.' }]
    const { agent, stored } = open(processor, [{ parts: [...parts, { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } } as never }] }])
    const { sources } = await agent.generate('Say it.', { memory })
    expect(JSON.stringify(sources)).toContain('public')
    expect(await stored()).not.toContain('hunter2')
  })

  it('of a chunk about a tool call changes what is shown and not what is executed; of the call in processOutputStep, both', async () => {
    const received: unknown[] = []
    const look = createTool({ id: 'look', execute: (input) => void received.push(input) })
    const script: Script = [{ toolCalls: [{ toolName: 'look', input: { at: 'hunter2' } }] }, 'Done.']
    const shows: Processor = {
      id: 'p',
      processOutputStream({ part }) {
        if (part.type === 'tool-call') (part.payload.args as { at: string }).at = 'shown'
      },
    }
    const first = open(shows, script, { look })
    const stream = await first.agent.stream('Look.', { memory })
    const calls: unknown[] = []
    for await (const chunk of stream.fullStream) if (chunk.type === 'tool-call') calls.push(chunk.payload.args)
    expect([calls, received]).toEqual([[{ at: 'shown' }], [{ at: 'hunter2' }]])
    expect(await first.stored()).toContain('hunter2')

    const executes: Processor = {
      id: 'p',
      processOutputStep({ toolCalls }) {
        for (const { args } of toolCalls) (args as { at: string }).at = 'here'
      },
    }
    const second = open(executes, script, { look })
    const { steps } = await second.agent.generate('Look.', { memory })
    expect(received.at(-1)).toEqual({ at: 'here' })
    expect(steps[0]?.toolCalls[0]?.args).toEqual({ at: 'here' })
    expect(await second.stored()).not.toContain('hunter2')
  })

  it('of a tool\'s result is what the model reads, also through toModelOutput, and what is stored and published', async () => {
    const processor: Processor = {
      id: 'p',
      processToolResult({ result }) {
        if (typeof result === 'object' && result !== null && 'secret' in result) result.secret = '***'
      },
    }
    const execute = () => ({ secret: 'hunter2' })
    const plain = createTool({ id: 'plain', execute })
    const shaped = createTool({ id: 'shaped', execute, toModelOutput: (output) => ({ type: 'text', value: `It is ${(output as { secret: string }).secret}.` }) })
    const { agent, model, stored } = open(processor, [{ toolCalls: [{ toolName: 'plain' }, { toolName: 'shaped' }] }, 'Done.'], { plain, shaped })
    const stream = await agent.stream('Look.', { memory })
    const shown: string[] = []
    for await (const chunk of stream.fullStream) shown.push(JSON.stringify(chunk))
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain('It is ***.')
    expect(JSON.stringify([model.calls, shown, await stream.steps])).not.toContain('hunter2')
    expect(await stored()).not.toContain('hunter2')
  })

  it('of the settings, the provider options and the instructions of a step is for that call', async () => {
    const processor: Processor = {
      id: 'p',
      processInputStep({ stepNumber, modelSettings, providerOptions, systemMessages }) {
        if (stepNumber > 0) return
        modelSettings.temperature = 0.5
        if (providerOptions?.scripted) providerOptions.scripted.mode = 'changed'
        systemMessages.push({ role: 'system', content: 'Be brief.' })
      },
    }
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const { agent, model } = open(processor, [{ toolCalls: [{ toolName: 'look' }] }, 'Done.'], { look })
    const providerOptions = { scripted: { mode: 'given' } }
    await agent.generate('Look.', { memory, providerOptions })
    expect(model.calls.map((call) => [call.temperature, call.providerOptions?.scripted?.mode, JSON.stringify(call.prompt).includes('Be brief.')]))
      .toEqual([[0.5, 'changed', true], [undefined, 'given', false]])
    expect(providerOptions).toEqual({ scripted: { mode: 'given' } })
  })

  it('of the instructions in processInput is for the run, and not for the next one', async () => {
    let runs = 0
    const processor: Processor = {
      id: 'p',
      processInput({ systemMessages }) {
        if (runs++ === 0) systemMessages.push({ role: 'system', content: 'Be brief.' })
      },
    }
    const { agent, model } = open(processor, ['One.', 'Two.'])
    await agent.generate('Go.', { memory })
    await agent.generate('Go on.', { memory })
    expect(model.calls.map((call) => JSON.stringify(call.prompt).includes('Be brief.'))).toEqual([true, false])
  })

  it('of an attachment changes its part; the other files stay', async () => {
    const processor: Processor = {
      id: 'p',
      processInput({ messages }) {
        const [, second] = messages[0]?.content.experimental_attachments ?? []
        if (second) second.url = 'https://example.com/kept.png'
      },
    }
    const { agent, model, stored } = open(processor, ['Nice.'])
    const file = (data: string): { type: 'file'; mediaType: string; data: string } => ({ type: 'file', mediaType: 'image/png', data })
    await agent.generate([{ role: 'user', content: [{ type: 'text', text: 'Look.' }, file('AAAA'), file('BBBB')] }], { memory })
    expect(await stored()).toContain('https://example.com/kept.png')
    expect(await stored()).toContain('AAAA')
    expect(await stored()).not.toContain('BBBB')
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain('AAAA')
    expect(JSON.stringify(model.calls[0]?.prompt)).not.toContain('BBBB')
  })

  it('never comes back by the id of a provider\'s item', async () => {
    await using server = await providerServer({ script: ['It is hunter2.', 'ok'] })
    const processor: Processor = {
      id: 'p',
      processOutputStream({ part }) {
        if (part.type === 'text-delta') part.payload.text = hide(part.payload.text)
      },
    }
    const { agent } = openWith(processor, createOpenAI(server.openai).responses('gpt-5'))
    await agent.generate('Say it.', { memory })
    await agent.generate('And now?', { memory })
    const input = JSON.stringify(server.requests.at(-1)?.body)
    expect(input).toContain('It is ***.')
    expect(input).not.toContain('item_reference')
  })

  it('after it has returned has no effect', async () => {
    const kept: Message[] = []
    const processor: Processor = {
      id: 'p',
      processInput: ({ messages }) => void kept.push(...messages),
      processOutputResult: () => {
        for (const { content } of kept) content.parts[0] = { type: 'text', text: 'Late.' }
      },
    }
    const { agent, stored, model } = open(processor, ['One.', 'Two.'])
    await agent.generate('First.', { memory })
    await agent.generate('Second.', { memory })
    expect(await stored()).not.toContain('Late.')
    expect(JSON.stringify(model.calls)).not.toContain('Late.')
  })
})

/** Replaces each message of the array by a copy that hides the password. */
function replaceIn(messages: Message[]): void {
  for (const [index, message] of messages.entries()) {
    const parts = message.content.parts.map((part) => (part.type === 'text' ? { ...part, text: hide(part.text) } : part))
    messages[index] = { ...message, content: { ...message.content, parts } }
  }
}

describe('[G2.42] a hook that changes the array of messages and returns no other messages', () => {
  const hooks = ['processInput', 'processInputStep', 'processOutputStep', 'processOutputResult'] as const
  const assigned: Array<[string, (args: { messages: Message[] }) => unknown]> = [
    ['nothing', ({ messages }) => replaceIn(messages)],
    ['a promise', async ({ messages }) => replaceIn(await Promise.resolve(messages))],
    ['the array', ({ messages }) => (replaceIn(messages), messages)],
  ]
  it.each(hooks.flatMap((hook) => assigned.map(([way, change]) => ({ hook, way, change }))))('$hook, assigned, returns $way: what it left counts', async ({ hook, change }) => {
    const { agent, model, stored } = open({ id: 'p', [hook]: change } as unknown as Processor, ['I heard hunter2.', 'Fine.'])
    const { text } = await agent.generate('My password is hunter2.', { memory })
    const isOutput = hook.startsWith('processOutput')
    expect(text).toBe(isOutput ? 'I heard ***.' : 'I heard hunter2.')
    expect(JSON.stringify(model.calls[0]?.prompt)).toContain(isOutput ? 'My password is hunter2.' : 'My password is ***.')
    if (hook !== 'processInputStep') expect(await stored()).toContain(isOutput ? 'I heard ***.' : 'My password is ***.')
    expect((await stored()).match(/hunter2/g)).toHaveLength(hook === 'processInputStep' ? 2 : 1)
  })

  const added = (): Message => ({ id: 'added', role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'Added.' }] } })
  it.each(['processInput', 'processInputStep'] as const)('%s: push, splice and pop', async (hook) => {
    const { agent, model } = open({ id: 'p', [hook]: ({ messages }: { messages: Message[] }) => void messages.push(added()) } as unknown as Processor, ['Fine.'])
    await agent.generate('Hello.', { memory })
    expect(model.calls[0]?.prompt.map(({ content }) => JSON.stringify(content).includes('Added.'))).toEqual([false, true])
    const other = open({ id: 'p', [hook]: ({ messages }: { messages: Message[] }) => void messages.splice(0, 1, added()) } as unknown as Processor, ['Fine.'])
    await other.agent.generate('Hello.', { memory })
    expect(other.model.calls[0]?.prompt.map(({ content }) => JSON.stringify(content).includes('Added.'))).toEqual([true])
    const empty = open({ id: 'p', [hook]: ({ messages }: { messages: Message[] }) => void messages.pop() } as unknown as Processor, ['Fine.'])
    await expect(empty.agent.generate('Hello.', { memory })).rejects.toThrow('it removed every message')
    expect(empty.model.callCount).toBe(0)
  })

  it('the hooks after it receive what it left', async () => {
    const seen: string[] = []
    const first: Processor = { id: 'first', processInput: ({ messages }) => replaceIn(messages) }
    const second: Processor = { id: 'second', processInput: ({ messages, messageList }) => void seen.push(JSON.stringify([messages, messageList.get.all.db()])) }
    await open([first, second], ['Fine.']).agent.generate('My password is hunter2.', { memory })
    expect(seen.join()).toContain('***')
    expect(seen.join()).not.toContain('hunter2')
  })

  it('refused are: the list returned beside it, the calls of a step left out, the messages of a failed model call', async () => {
    const list = open({ id: 'p', processInput: ({ messages, messageList }) => (replaceIn(messages), messageList) }, ['Fine.'])
    await expect(list.agent.generate('It is hunter2.', { memory })).rejects.toThrow('it changed the array of messages and returned the list')
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const calls = open({ id: 'p', processOutputStep: ({ messages }) => void messages.pop() }, [{ toolCalls: [{ toolName: 'look' }] }, 'Fine.'], { look })
    await expect(calls.agent.generate('Go.', { memory })).rejects.toThrow('it left out the message that calls tools')
    const failed = open({ id: 'p', processAPIError: ({ messages }) => (replaceIn(messages), { retry: true }) }, [{ error: { status: 400, message: 'no' } }, 'Fine.'])
    await expect(failed.agent.generate('It is hunter2.', { memory })).rejects.toThrow('it changed messages, which processInputStep may change')
  })

  it('a copy that it sorts, and messages that it only reads, change nothing', async () => {
    const { agent, model } = open({ id: 'p', processInputStep: ({ messages }) => void messages.toReversed().find(({ role }) => role === 'user') }, ['Fine.', 'Still.'])
    await agent.generate('One.', { memory })
    await agent.generate('Two.', { memory })
    expect(model.calls[1]?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })
})

describe('[G2.42] the plain text beside the parts', () => {
  const setText = (messages: Message[]) => messages.forEach(({ content }) => (content.content = 'REDACTED'))
  const ways: Array<[string, (args: { messages: Message[]; messageList: { get: { all: { db(): Message[] } } } }) => unknown]> = [
    ['in place', ({ messages }) => setText(messages)],
    ['in place and returns the array', ({ messages }) => (setText(messages), messages)],
    ['in the list', ({ messageList }) => setText(messageList.get.all.db())],
    ['in a copy', ({ messages }) => messages.map((message) => ({ ...message, content: { ...message.content, content: 'REDACTED' } }))],
  ]
  it.each(ways)('a hook that sets it gets an error that names where the text is: %s', async (_, change) => {
    const { agent, model } = open({ id: 'p', processInput: change } as unknown as Processor, ['Fine.'])
    await expect(agent.generate('It is hunter2.', { memory })).rejects.toThrow(/it set content\.content in message '.*'.* Set the text of a text part in content\.parts\./)
    expect(model.callCount).toBe(0)
  })

  it('goes with the parts: what a hook hides there is not kept beside them', async () => {
    const { agent, stored } = open({ id: 'p', processInput: ({ messages }) => hideIn(messages) }, ['Fine.'])
    const content = { format: 2 as const, parts: [{ type: 'text' as const, text: 'It is hunter2.' }], content: 'It is hunter2.' }
    await agent.generate([{ id: 'm', role: 'user', createdAt: new Date(0), content }], { memory })
    expect(await stored()).toContain('It is ***.')
    expect(await stored()).not.toContain('hunter2')
  })

  it('a text in place of the content is refused, with the form that it needs', async () => {
    const { agent } = open({ id: 'p', processInput: ({ messages }) => messages.forEach((message) => Object.assign(message, { content: 'text' })) }, ['Fine.'])
    await expect(agent.generate('Go.', { memory })).rejects.toThrow("with a string as its content in place of { format: 2, parts: [{ type: 'text', text: '…' }] }")
  })
})

describe('[G2.42] a change in place that can\'t be used', () => {
  const broken = (parts: unknown): Record<string, (args: { messages: Message[] }) => void> => {
    const change = ({ messages }: { messages: Message[] }) => {
      for (const { content } of messages) content.parts = parts as MessagePart[]
    }
    return { processInput: change, processInputStep: change, processOutputStep: change, processOutputResult: change }
  }
  const cases = [[{ type: 'text' }], [null], 'words', [{ type: 'text', text: 'x', metadata: 1n }]].flatMap((parts) =>
    ['processInput', 'processInputStep', 'processOutputStep', 'processOutputResult'].map((hook) => ({ hook, parts })))

  it.each(cases)('$hook: the run fails and names the processor', async ({ hook, parts }) => {
    const { agent } = open({ id: 'p', [hook]: broken(parts)[hook] } as unknown as Processor, ['Fine.'])
    await expect(agent.generate('Go.', { memory })).rejects.toMatchObject({
      code: 'processor_failed', message: expect.stringContaining(`'p' failed in ${hook}`) as string, details: { processorId: 'p', hook },
    })
  })

  it('is that of one of several', async () => {
    const fine: Processor = { id: 'fine', processInput: () => {} }
    const { agent } = open([fine, { id: 'p', processInput: broken([null]).processInput } as Processor], ['Fine.'])
    await expect(agent.generate('Go.', { memory })).rejects.toThrow(/^One of the processors 'fine', 'p' failed in processInput: /)
  })

  const forbidden: Array<[string, Partial<Processor>]> = [
    ['a chunk that only the run creates', { processOutputStream: ({ part }) => void (part.type === 'finish' || part.type === 'step-start' ? Object.assign(part.payload, { messageId: 'other' }) : part) }],
    ['the text of a chunk that becomes a number', { processOutputStream: ({ part }) => void (part.type === 'text-delta' && Object.assign(part.payload, { text: 7 })) }],
    ['the result of a run', { processOutputResult: ({ result }) => void (result.text = 'Other.') }],
    ['the steps of a run', { processOutputResult: ({ result }) => result.steps.forEach((step) => (step.text = 'Other.')) }],
    ['the arguments of a call that has run', { processToolResult: ({ args }) => void Object.assign(args as object, { at: 'there' }) }],
    ['model settings that do not exist', { processInputStep: ({ modelSettings }) => void Object.assign(modelSettings, { temprature: 1 }) }],
  ]
  it.each(forbidden)('%s', async (_, hooks) => {
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const { agent } = open({ id: 'p', ...hooks }, [{ toolCalls: [{ toolName: 'look', input: { at: 'here' } }] }, 'Done.'], { look })
    await expect(agent.generate('Go.', { memory })).rejects.toMatchObject({ code: 'processor_failed', message: expect.stringContaining("'p' failed in") as string })
  })

  it('messages of a failed model call', async () => {
    const { agent } = open({ id: 'p', processAPIError: ({ messages }) => (hideIn(messages), { retry: true }) }, [{ error: { status: 400, message: 'no' } }, 'Fine.'])
    await expect(agent.generate('It is hunter2.', { memory })).rejects.toThrow('it changed messages, which processInputStep may change')
  })
})

describe('[G2.8] an empty object', () => {
  it.each(['processInput', 'processInputStep', 'processToolResult', 'processAPIError'])('of %s changes nothing', async (hook) => {
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const script: Script = hook === 'processAPIError' ? [{ error: { status: 400, message: 'no' } }] : [{ toolCalls: [{ toolName: 'look' }] }, 'Done.']
    const { agent } = open({ id: 'p', [hook]: () => ({}) } as unknown as Processor, script, { look })
    const answer = agent.generate('Go.', { memory })
    if (hook === 'processAPIError') await expect(answer).rejects.toMatchObject({ code: 'provider_error' })
    else expect((await answer).text).toBe('Done.')
  })
})

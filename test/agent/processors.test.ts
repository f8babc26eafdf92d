import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { MessageList } from '../../src/message/list/list.ts'
import type { Message, MessagePart } from '../../src/message/message.ts'
import type { Processor } from '../../src/processors/processor.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, refuseStrayRejections, rejection, typesOf } from './asking.ts'

const textOf = (message: Message | undefined) => message?.content.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
const withText = (message: Message, text: string): Message => ({ ...message, content: { ...message.content, parts: [{ type: 'text', text }] } })
const tools = { look: createTool({ id: 'look', execute: async () => ({ secret: 's1', fine: true }) }) }
const looking = () => scriptedModel([{ text: 'Let me look.', toolCalls: [{ toolName: 'look' }] }, 'It is fine.'])

describe('processors', () => {
  refuseStrayRejections()

  it('are asked in their order, each on what the one before left', async () => {
    const said: string[] = []
    const shout = (id: string): Processor => ({
      id,
      processInput: ({ messages }) => {
        said.push(`${id}: ${textOf(messages[0])}`)
        return messages.map((message) => withText(message, `${textOf(message)}${id}`))
      },
    })
    const model = scriptedModel(['Hi.'])
    await new Agent({ id: 'a', model, inputProcessors: [shout('!'), shout('?')] }).generate('Go')
    expect(said).toEqual(['!: Go', '?: Go!'])
    expect(model.calls[0]?.prompt).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Go!?' }] }])
  })

  it('are asked at every place of a run', async () => {
    const asked: string[] = []
    const note = (where: string) => (): void => void asked.push(where)
    const all: Processor = {
      id: 'all',
      processInput: note('input'),
      processInputStep: ({ stepNumber }) => void asked.push(`step ${stepNumber}`),
      computeStateSignal: note('state'),
      processOutputStream: ({ part }) => void (part.type === 'finish' && asked.push('stream')),
      processOutputStep: ({ text, toolCalls }) => void asked.push(`said ${text} ${toolCalls.length}`),
      processToolResult: ({ toolName, result }) => void asked.push(`tool ${toolName} ${JSON.stringify(result)}`),
      processOutputResult: ({ result }) => void asked.push(`result ${result.text}`),
    }
    await new Agent({ id: 'a', model: looking(), tools, inputProcessors: [all], outputProcessors: [all] }).generate('Go.')
    expect(asked).toEqual([
      'input', 'step 0', 'state', 'said Let me look. 1', 'tool look {"secret":"s1","fine":true}', 'step 1', 'state', 'said It is fine. 0',
      'result It is fine.', 'stream',
    ])
  })

  it('have a state for as long as the run lasts, of their own', async () => {
    const counts: unknown[] = []
    const counter = (id: string): Processor => ({
      id,
      processInputStep: ({ state }) => {
        state.count = Number(state.count ?? 0) + 1
      },
      processOutputResult: ({ state }) => void counts.push([id, state.count]),
    })
    const processors = [counter('x'), counter('y')]
    const agent = new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Hi.'], { loop: true }), tools, inputProcessors: processors, outputProcessors: processors })
    await agent.generate('Go.')
    await agent.generate('Go.')
    expect(counts).toEqual([['x', 2], ['y', 2], ['x', 2], ['y', 2]])
  })

  it('of a call stand in place of the agent\'s', async () => {
    const asked: string[] = []
    const named = (id: string): Processor => ({ id, processInput: () => void asked.push(id) })
    await new Agent({ id: 'a', model: scriptedModel(['Hi.']), inputProcessors: [named('own')] }).generate('Go.', { inputProcessors: [named('call')] })
    expect(asked).toEqual(['call'])
  })

  it('see only the input as messages, and all of it as the list', async () => {
    const seen: unknown[] = []
    const look: Processor = {
      id: 'look',
      processInput: ({ messages, messageList }) => void seen.push(messages.map(textOf), messageList.get.all.db().length, messageList instanceof MessageList),
    }
    await new Agent({ id: 'a', model: scriptedModel(['Hi.']), inputProcessors: [look] }).generate([
      { role: 'user', content: 'One.' }, { role: 'assistant', content: 'Two.' }, { role: 'user', content: 'Three.' },
    ])
    expect(seen).toEqual([['One.', 'Two.', 'Three.'], 3, true])
  })

  it('may change the instructions: for the run, or for a step', async () => {
    const model = looking()
    const system: Processor = {
      id: 'system',
      processInput: ({ messages, systemMessages }) => ({ messages, systemMessages: [...systemMessages, { role: 'system', content: 'For the run.' }] }),
      processInputStep: ({ stepNumber, systemMessages }) =>
        stepNumber === 0 ? { systemMessages: [...systemMessages, { role: 'system', content: 'For the step.' }] } : undefined,
    }
    const added: Processor = { id: 'added', processInput: ({ messageList }) => messageList.addSystem('Added.') }
    await new Agent({ id: 'a', instructions: 'Own.', model, tools, inputProcessors: [system, added] }).generate('Go.')
    const told = model.calls.map(({ prompt }) => prompt.filter((message) => message.role === 'system').map((message) => message.content))
    expect(told).toEqual([['Own.', 'For the run.', 'Added.', 'For the step.'], ['Own.', 'For the run.', 'Added.']])
  })

  it('may change what a step is asked with: model, tools, settings', async () => {
    const own = scriptedModel(['own'])
    const other = scriptedModel(['other'])
    const change: Processor = {
      id: 'change',
      processInputStep: ({ model, tools: offered, activeTools, modelSettings }) => {
        expect([model, offered.map(({ name }) => name), activeTools, modelSettings]).toEqual([own, ['look'], undefined, { temperature: 1 }])
        return { model: other, activeTools: ['look'], toolChoice: { type: 'required' }, modelSettings: { temperature: 0 }, providerOptions: { p: { a: 1 } } }
      },
    }
    const { text } = await new Agent({ id: 'a', model: own, tools, inputProcessors: [change] }).generate('Go.', { modelSettings: { temperature: 1 } })
    expect(text).toBe('other')
    expect(other.calls[0]).toMatchObject({ toolChoice: { type: 'required' }, temperature: 0, providerOptions: { p: { a: 1 } } })
  })

  it('may show a step other messages than history\'s; the next step has its own again', async () => {
    const model = looking()
    const trim: Processor = { id: 'trim', processInputStep: ({ messages, stepNumber }) => (stepNumber === 0 ? messages.slice(-1) : undefined) }
    const result = await new Agent({ id: 'a', model, tools, inputProcessors: [trim] }).generate([
      { role: 'user', content: 'One.' }, { role: 'assistant', content: 'Two.' }, { role: 'user', content: 'Three.' },
    ])
    expect(model.calls.map(({ prompt }) => prompt.map(({ role }) => role))).toEqual([['user'], ['user', 'assistant', 'user', 'assistant', 'tool']])
    expect(result.messages).toHaveLength(1)
  })

  it('may send a signal with such a step, and it is in its prompt and in the next', async () => {
    const model = looking()
    const trim: Processor = {
      id: 'trim',
      async processInputStep({ messages, stepNumber, sendSignal }) {
        if (stepNumber > 0) return undefined
        await sendSignal({ type: 'reactive', contents: 'Short.' })
        return messages.slice(-1)
      },
    }
    await new Agent({ id: 'a', model, tools, inputProcessors: [trim] }).generate([{ role: 'user', content: 'One.' }, { role: 'assistant', content: 'Two.' }, { role: 'user', content: 'Three.' }])
    const told = { role: 'user', content: [{ type: 'text', text: '<system-reminder>Short.</system-reminder>' }] }
    expect(model.calls[0]?.prompt).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Three.' }] }, told])
    expect(model.calls[1]?.prompt[3]).toEqual(told)
  })

  it('may drop and replace what is streamed, and what is kept is what was shown', async () => {
    const model = scriptedModel([{ text: ['My code ', 'is ', '1234', '.'], sources: [{ url: 'https://x.example/' }] }])
    const redact: Processor = {
      id: 'redact',
      processOutputStream: async ({ part }) => {
        if (part.type === 'source') return null
        if (part.type !== 'text-delta') return undefined
        if (part.payload.text === 'is ') return null
        return { ...part, payload: { ...part.payload, text: part.payload.text.replace(/\d+/, '****') } }
      },
    }
    const stream = await new Agent({ id: 'a', model, outputProcessors: [redact] }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(of(chunks, 'text-delta').map((chunk) => chunk.payload.text)).toEqual(['My code ', '****', '.'])
    expect(JSON.stringify(chunks)).not.toContain('1234')
    const result = await stream.result
    expect(result.text).toBe('My code ****.')
    expect(JSON.stringify(result)).not.toContain('1234')
    expect(result.sources).toEqual([])
  })

  it('see chunks one after the other, from any source and however long each takes', async () => {
    const slow = Promise.withResolvers<void>()
    let inside = 0
    const order: string[] = []
    const watcher: Processor = {
      id: 'watcher',
      async processOutputStream({ part }) {
        expect(++inside).toBe(1)
        if (part.type === 'data-one') await slow.promise
        order.push(part.type)
        inside--
      },
    }
    const speak = createTool({
      id: 'speak',
      execute: async (_, { write }) => {
        write({ type: 'data-one', data: 1 })
        write({ type: 'data-two', data: 2 })
        slow.resolve()
        return 'ok'
      },
    })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'speak' }] }, 'Hi.'])
    const stream = await new Agent({ id: 'a', model, tools: { speak }, outputProcessors: [watcher] }).stream('Go.')
    const shown = typesOf(await chunksOf(stream))
    expect(order).toEqual(shown)
    expect(shown.slice(shown.indexOf('data-one'), shown.indexOf('data-one') + 3)).toEqual(['data-one', 'data-two', 'tool-result'])
  })

  it('may send a signal while they look at a chunk', async () => {
    const once: Processor = {
      id: 'once',
      async processOutputStream({ part, state, sendSignal }) {
        if (part.type !== 'tool-result' || state.sent) return
        state.sent = true
        await sendSignal({ type: 'reactive', contents: 'Seen.' })
      },
    }
    const model = looking()
    const stream = await new Agent({ id: 'a', model, tools, outputProcessors: [once] }).stream('Go.')
    expect(of(await chunksOf(stream), 'data-signal')).toHaveLength(1)
    expect(model.calls[1]?.prompt.at(-1)).toMatchObject({ content: [{ text: '<system-reminder>Seen.</system-reminder>' }] })
  })

  it('receive the earlier messages, the newest last', async () => {
    let before: string[] = []
    const watcher: Processor = { id: 'w', processOutputStream: ({ part, streamParts }) => void (part.type === 'text-end' && (before = typesOf(streamParts))) }
    await new Agent({ id: 'a', model: scriptedModel([{ text: ['a', 'b'] }]), outputProcessors: [watcher] }).generate('Go.')
    expect(before).toEqual(['start', 'step-start', 'response-metadata', 'text-start', 'text-delta', 'text-delta'])
  })

  it('may change the result of a tool before the model sees it, by any way', async () => {
    const model = looking()
    const redact: Processor = { id: 'redact', processToolResult: ({ result }) => ({ result: { ...(result as object), secret: '***' } }) }
    const look = createTool({ id: 'look', execute: async () => ({ secret: 's1' }), toModelOutput: (output) => ({ type: 'text', value: `got ${JSON.stringify(output)}` }) })
    const stream = await new Agent({ id: 'a', model, tools: { look }, outputProcessors: [redact] }).stream('Go.')
    expect(JSON.stringify(await chunksOf(stream))).not.toContain('s1')
    expect(model.calls[1]?.prompt.at(-1)).toMatchObject({ content: [{ output: { type: 'text', value: 'got {"secret":"***"}' } }] })
    expect((await stream.toolResults)[0]?.result).toEqual({ secret: '***' })
  })

  it('may change what the model said before its tools run, and drop calls', async () => {
    const model = scriptedModel([{ text: 'Secretly.', toolCalls: [{ toolName: 'look' }, { toolName: 'look', input: { bad: true } }] }, 'Done.'])
    const strict: Processor = {
      id: 'strict',
      processOutputStep: ({ messages, stepNumber }) => (stepNumber > 0 ? undefined : messages.map((message) => ({
        ...message,
        content: {
          ...message.content,
          parts: message.content.parts.flatMap((part): MessagePart[] => {
            if (part.type === 'text') return [{ ...part, text: 'Openly.' }]
            return part.type === 'tool-invocation' && part.toolInvocation.toolCallId === 'call_0_1' ? [] : [part]
          }),
        },
      }))),
    }
    const result = await new Agent({ id: 'a', model, tools, outputProcessors: [strict] }).generate('Go.')
    expect(result.steps[0]).toMatchObject({ text: 'Openly.', toolCalls: [{ toolCallId: 'call_0_0' }], toolResults: [{ toolCallId: 'call_0_0' }] })
    expect(model.calls[1]?.prompt.slice(1)).toMatchObject([
      { content: [{ type: 'text', text: 'Openly.' }, { type: 'tool-call', toolCallId: 'call_0_0' }] },
      { content: [{ toolCallId: 'call_0_0' }] },
    ])
    expect(model.calls[1]?.prompt).toHaveLength(3)
  })

  it('may change the answer before it is kept, take it away, or add to it', async () => {
    const answer = async (processOutputResult: Processor['processOutputResult']) =>
      new Agent({ id: 'a', model: scriptedModel(['Raw.']), outputProcessors: [{ id: 'p', processOutputResult }] }).generate('Go.')
    const changed = await answer(({ messages }) => messages.map((message) => withText(message, 'Polished.')))
    expect([changed.text, changed.messages.map(textOf)]).toEqual(['Polished.', ['Polished.']])
    const taken = await answer(() => [])
    expect([taken.text, taken.messages]).toEqual(['', []])
    const added = await answer(({ messages }) => [...messages, { ...withText(messages[0] as Message, 'P.S.'), id: 'ps' }])
    expect(added.messages.map(textOf)).toEqual(['Raw.', 'P.S.'])
    const same = await answer(({ messageList }) => messageList)
    expect(same.text).toBe('Raw.')
  })

  it('may have a failed call tried again', async () => {
    const clock = virtualClock()
    const model = scriptedModel([{ error: { status: 400, message: 'too long' } }, 'Hi.'])
    const seen: unknown[] = []
    const rescue: Processor = { id: 'rescue', processAPIError: async ({ error }) => (seen.push((error as Error).message), { retry: true }) }
    expect((await new Agent({ id: 'a', heed: recordedHeed(clock).heed, model, inputProcessors: [rescue] }).generate('Go.')).text).toBe('Hi.')
    expect(seen).toEqual([expect.stringContaining('too long')])
    const never = scriptedModel([{ error: { status: 400 } }], { loop: true })
    expect(await rejection(new Agent({ id: 'a', heed: recordedHeed(clock).heed, model: never, outputProcessors: [rescue] }).generate('Go.'))).toMatchObject({ code: 'provider_error' })
    expect(never.callCount).toBe(2)
  })
})

describe('a processor that does wrong', () => {
  refuseStrayRejections()
  const list = new MessageList().add('x', 'input')
  const cases: Array<[string, Partial<Processor>, RegExp]> = [
    ['throws in processInput', { processInput: () => { throw new Error('broke') } }, /'p' failed in processInput: broke/],
    ['rejects in processInputStep', { processInputStep: () => Promise.reject(new Error('broke')) }, /in processInputStep: broke/],
    ['throws in computeStateSignal', { computeStateSignal: () => { throw new Error('broke') } }, /in computeStateSignal: broke/],
    ['throws in processOutputStream', { processOutputStream: ({ part }) => { if (part.type === 'text-delta') throw new Error('broke') } }, /in processOutputStream: broke/],
    ['throws in processOutputStep', { processOutputStep: () => { throw new Error('broke') } }, /in processOutputStep: broke/],
    ['throws in processToolResult', { processToolResult: () => { throw new Error('broke') } }, /in processToolResult: broke/],
    ['throws in processOutputResult', { processOutputResult: () => { throw new Error('broke') } }, /in processOutputResult: broke/],
    ['throws what is no error', { processInput: () => { throw 'broke' } }, /in processInput: broke/],
    ['returns a text', { processInput: () => 'sure' as never }, /it returned a string/],
    ['returns null', { processInput: () => null as never }, /it returned null/],
    ['returns an odd object', { processInputStep: () => ({ mesages: [] }) as never }, /it returned an object with mesages/],
    ['returns messages that are none', { processInput: () => [{ text: 'x' }] as never }, /an object with text among the messages/],
    ['returns null among messages', { processOutputResult: () => [null] as never }, /null among the messages/],
    ['returns a list of its own', { processInput: () => list }, /a new MessageList/],
    ['returns a list of its own for a step', { processInputStep: () => ({ messageList: list }) }, /a new MessageList/],
    ['returns instructions that are none', { processInputStep: () => ({ systemMessages: [{ role: 'user', content: 'x' }] as never }) }, /role "user"/],
    ['returns a chunk that is none', { processOutputStream: () => 7 as never }, /it returned a number/],
    ['returns a tool result that is none', { processToolResult: () => ({ value: 1 }) as never }, /it returned an object with value/],
    ['returns a state without a key', { computeStateSignal: () => ({ contents: 'x' }) as never }, /without a cacheKey/],
    ['returns a state without contents', { computeStateSignal: () => ({ cacheKey: 'k' }) as never }, /in computeStateSignal: .*contents/],
  ]

  it.each(cases)('%s: the run fails by its name', async (_, hooks, message) => {
    const processor: Processor = { ...hooks, id: 'p' }
    const stream = await new Agent({ id: 'a', heed: recordedHeed().heed, model: looking(), tools, inputProcessors: [processor], outputProcessors: [processor] }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(of(chunks, 'error')).toMatchObject([{ payload: { error: { code: 'processor_failed', message: expect.stringMatching(message) } } }])
    expect(typesOf(chunks).at(-1)).toBe('error')
    expect(await rejection(stream.result)).toMatchObject({ code: 'processor_failed' })
  })

  it('too late is logged: the run was over', async () => {
    const { heed, logged } = recordedHeed()
    const late: Processor = { id: 'late', processOutputStream: ({ part }) => { if (part.type === 'finish' || (part.type === 'step-finish' && !part.payload.stepResult.isContinued)) throw new Error('broke') } }
    const stream = await new Agent({ id: 'a', heed, model: scriptedModel(['Hi.']), outputProcessors: [late] }).stream('Go.')
    expect(typesOf(await chunksOf(stream)).slice(-2)).toEqual(['text-end', 'finish'])
    expect(await stream.text).toBe('Hi.')
    expect(logged).toHaveLength(2)
  })

  it('stops the tools that still run', async () => {
    const stopped = Promise.withResolvers<void>()
    const hang = createTool({ id: 'hang', execute: (_, { abortSignal }) => new Promise(() => abortSignal.addEventListener('abort', () => stopped.resolve())) })
    const say = createTool({ id: 'say', execute: async (_, { write }) => write({ type: 'data-x', data: 1 }) })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'hang' }, { toolName: 'say' }] }])
    const touchy: Processor = { id: 'touchy', processOutputStream: ({ part }) => { if (part.type === 'data-x') throw new Error('broke') } }
    const stream = await new Agent({ id: 'a', heed: recordedHeed().heed, model, tools: { hang, say }, outputProcessors: [touchy] }).stream('Go.')
    expect(await rejection(stream.result)).toMatchObject({ code: 'processor_failed' })
    await stopped.promise
  })

  it('see the run as it grows, and of each other\'s changes only those of the same step', async () => {
    const seen: Array<[string, number, number]> = []
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, { text: 'More.', toolCalls: [{ toolName: 'look' }] }, 'Done.'])
    const watching: Processor = {
      id: 'watching',
      processInputStep: ({ messages, messageList, stepNumber }) => {
        seen.push(['in', messages.length, messages.flatMap(({ content }) => content.parts).length])
        if (stepNumber === 1) messageList.add('Only now.', 'context')
      },
      processOutputStep: ({ messageList }) => {
        const messages = messageList.get.all.db()
        seen.push(['out', messages.length, messages.flatMap(({ content }) => content.parts).length])
      },
    }
    await new Agent({ id: 'a', model, tools, inputProcessors: [watching], outputProcessors: [watching] }).generate('Go.')
    const fresh = seen.map(([where, messages]) => [where, messages])
    expect(fresh).toEqual([['in', 1], ['out', 2], ['in', 2], ['out', 2], ['in', 2], ['out', 2]])
    expect(seen.map(([, , parts]) => parts)).toEqual(seen.map(([, , parts]) => parts).toSorted((a, b) => a - b))
    expect(model.calls.map((call) => JSON.stringify(call.prompt).includes('Only now.'))).toEqual([false, true, false])
  })
})

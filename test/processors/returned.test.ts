import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Message, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'

const memory = { thread: 't', resource: 'u' }
const look = createTool({ id: 'look', execute: () => 'seen' })
const message = (content: object): Message => ({ id: 'odd', role: 'user', createdAt: new Date(0), content } as unknown as Message)

describe.each(placeKinds())('what a hook returns, $name', ({ make }) => {
  function open(hook: string, returned: (args: { messages: Message[] }) => unknown) {
    let asked = 0
    const processor = { id: 'p', [hook]: (args: { messages: Message[] }) => (asked++, returned(args)) } as unknown as Processor
    const fails = hook === 'processAPIError'
    const model = scriptedModel(fails ? [{ error: { status: 400, message: 'no' } }] : [{ text: 'Looking.', toolCalls: [{ toolName: 'look' }] }, 'Done.'])
    const agent = new Agent({ id: 'a', model, tools: { look }, inputProcessors: [processor], outputProcessors: [processor] })
    openHeed({ agent }, make().store())
    return { agent, asked: () => asked }
  }

  const contents: Array<[string, object]> = [
    ['a part that is null', { format: 2, parts: [null] }],
    ['a part without a type', { format: 2, parts: [{}] }],
    ['a text part without text', { format: 2, parts: [{ type: 'text' }] }],
    ['metadata that is no JSON', { format: 2, parts: [{ type: 'text', text: 'x' }], metadata: { a: 1n } }],
  ]
  const ofMessages = ['processInput', 'processInputStep', 'processOutputStep', 'processOutputResult']
  const others: Array<[string, string, unknown]> = [
    ['processOutputStream', 'a delta without payload', { type: 'text-delta' }],
    ['processOutputStream', 'a delta whose text is a number', { type: 'text-delta', payload: { id: '1', text: 5 } }],
    ['processToolResult', 'no result', { result: undefined }],
    ['processToolResult', 'a result that is no JSON', { result: 1n }],
    ['computeStateSignal', 'null', null],
    ['computeStateSignal', 'zero', 0],
    ['computeStateSignal', 'an empty text', ''],
    ['processAPIError', 'a text', 'yes'],
    ['processAPIError', 'a list', []],
    ['processAPIError', 'a retry that is no boolean', { retry: 'yes' }],
  ]
  const cases = [
    ...ofMessages.flatMap((hook) => contents.map(([what, content]) => ({ hook, what, returned: ({ messages }: { messages: Message[] }) => [...messages, message(content)] }))),
    ...others.map(([hook, what, value]) => ({ hook, what, returned: () => value })),
  ]

  it.each(cases)('[G2.8] $hook that returns $what fails the run at once, by its name', async ({ hook, returned }) => {
    const { agent, asked } = open(hook, returned)
    await expect(agent.generate('Go.', { memory })).rejects.toMatchObject({ code: 'processor_failed', message: expect.stringContaining(`'p' failed in ${hook}`) as string })
    expect(asked()).toBe(1)
    expect(await agent.activeRun({ threadId: 't', resourceId: 'u' })).toBeNull()
  })

  it('[G2.8] processAPIError of one processor in both lists is asked once', async () => {
    const { agent, asked } = open('processAPIError', () => undefined)
    await expect(agent.generate('Go.', { memory })).rejects.toThrow('no')
    expect(asked()).toBe(1)
  })
})

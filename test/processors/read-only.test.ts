import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type Message, type MessageList, type Processor, type ToolsInput } from '../../src/index.ts'
import { scriptedModel, type Script } from '../../src/testing/index.ts'
import { rejection } from '../agent/asking.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { texts } from '../thread/said.ts'

const ask = (thread: string) => ({ memory: { thread, resource: 'ada' } })
type Args = { messages: Message[]; messageList: MessageList; source?: string }

function rewrite(messages: readonly Message[]): void {
  for (const { content } of messages) for (const part of content.parts) if (part.type === 'text') part.text = `<${part.text}>`
}
const added: Message = { id: 'added', role: 'user', createdAt: new Date(0), content: { format: 2, parts: [{ type: 'text', text: 'Added.' }] } }
const look = createTool({ id: 'look', execute: () => 'seen' })

describe.each(placeKinds())('messages that a hook only reads, $name', ({ make }) => {
  function open(processor: Processor, script: Script, tools: ToolsInput = {}) {
    const model = scriptedModel(script)
    const memory = new Memory({ workingMemory: { enabled: true } })
    const agent = new Agent({ id: 'a', model, tools, memory, inputProcessors: [processor], outputProcessors: [processor] })
    openHeed({ agent }, make().store())
    return { agent, model }
  }

  /** A thread with history, working memory, and a message of another thread to recall. Then the hook is called. */
  async function called(hook: string, change: (args: Args) => unknown, tools: ToolsInput = {}, script: Script = ['Sure.', 'Hello.', 'Under the flowerpot.']) {
    let isOn = false
    const { agent, model } = open({ id: 'p', [hook]: (args: Args) => (isOn && args.source !== 'context' ? change(args) : undefined) } as unknown as Processor, script, tools)
    const memory = await agent.getMemory()
    await agent.generate('The spare key is under the flowerpot.', ask('one'))
    await agent.generate('Good morning.', ask('two'))
    await memory.updateWorkingMemory({ resourceId: 'ada', workingMemory: '# Name: Sam' })
    isOn = true
    return { agent, model, result: agent.generate('Where is the spare key?', ask('two')) }
  }

  const changes: Array<[string, (args: Args) => unknown]> = [
    ['changes history in place', ({ messageList }) => rewrite(messageList.get.remembered.db())],
    ['removes history', ({ messageList }) => void messageList.removeByIds(messageList.get.remembered.db().slice(0, 1).map(({ id }) => id))],
    ['adds to history', ({ messageList }) => void messageList.add(added, 'memory')],
    ['adds context', ({ messageList }) => void messageList.add('Be brief.', 'context')],
    ['returns history with a message changed', ({ messageList }) => messageList.get.all.db().map((message) => (rewrite([structuredClone(message)]), message.id === messageList.get.remembered.db()[0]?.id ? { ...message, content: added.content } : message))],
    ['returns history without a message', ({ messageList }) => messageList.get.all.db().slice(1)],
    ['changes working memory in place', ({ messageList }) => rewrite(messageList.get.context.db().filter((message) => JSON.stringify(message).includes('Sam')))],
    ['changes recalled text in place', ({ messageList }) => rewrite(messageList.get.context.db().filter((message) => JSON.stringify(message).includes('flowerpot')))],
    ['removes what was recalled', ({ messageList }) => void messageList.removeByIds(messageList.get.context.db().map(({ id }) => id))],
  ]

  it.each(changes)('[G2.44] processInput that %s ends the run, and the error names processInputStep', async (_what, change) => {
    const { model, result } = await called('processInput', change)
    const error = await rejection(result)
    expect(error).toMatchObject({ code: 'processor_failed', message: expect.stringContaining("'p' failed in processInput: it ") as string })
    expect(error).toMatchObject({ message: expect.stringContaining('processInputStep') as string })
    expect(model.calls).toHaveLength(2)
  })

  it.each(changes.filter(([what]) => !what.startsWith('adds')))('[G2.44] processInputStep that %s changes the prompt', async (what, change) => {
    const { model, result } = await called('processInputStep', change)
    await result
    const told = JSON.stringify(model.calls[2]?.prompt)
    const gone = { 'removes what was recalled': 'flowerpot', 'removes history': 'Good morning', 'returns history without a message': 'Good morning' }[what]
    if (gone) expect(told).not.toContain(gone)
    else expect(told).toMatch(/<Good morning|Added\.|<<working-memory>|<<recalled-messages>/)
  })

  it.each(['processOutputStep', 'processOutputResult'])('[G2.44] %s that changes the input ends the run', async (hook) => {
    for (const change of changes.slice(0, 3).map(([, one]) => one)) {
      const error = await rejection((await called(hook, change)).result)
      expect(error).toMatchObject({ code: 'processor_failed', message: expect.stringContaining(`'p' failed in ${hook}: it `) as string })
    }
  })

  it('[G2.44] processOutputStep that changes the text of an earlier step ends the run', async () => {
    const script: Script = ['Sure.', 'Hello.', { text: 'Looking.', toolCalls: [{ toolName: 'look' }] }, 'Done.']
    let step = 0
    const { result } = await called('processOutputStep', ({ messages }) => (step++ === 1 ? rewrite(messages) : undefined), { look }, script)
    expect(await rejection(result)).toMatchObject({ code: 'processor_failed', message: expect.stringContaining('the output of this step alone') as string })
  })

  it.each(['processInputStep', 'processOutputStep', 'computeStateSignal'])('[G2.44] %s that changes the list of steps ends the run', async (hook) => {
    const script: Script = ['Sure.', 'Hello.', { text: 'Looking.', toolCalls: [{ toolName: 'look' }] }, 'Done.']
    const { result } = await called(hook, (args) => void ((args as unknown as { steps: unknown[] }).steps.length = 0), { look }, script)
    expect(await rejection(result)).toMatchObject({ code: 'processor_failed', message: expect.stringContaining(`'p' failed in ${hook}`) as string })
  })

  it('[G2.44] a hook that changes all messages may read the input of the run before its own call', async () => {
    let isOn = false
    const hide: Processor = {
      id: 'p',
      processInput({ messageList }) {
        if (!isOn) throw new Error('not yet')
        for (const { content } of messageList.get.all.db()) for (const part of content.parts) if (part.type === 'text') part.text = part.text.replaceAll('hunter2', '***')
      },
    }
    const { agent, model } = open(hide, () => 'ok')
    await rejection(agent.generate('It is hunter2.', ask('t')))
    isOn = true
    await (await agent.getMemory()).updateWorkingMemory({ resourceId: 'ada', workingMemory: '# Password: hunter2' })
    await agent.generate('Again: hunter2.', ask('t'))
    expect(texts(model.calls[0]?.prompt ?? []).filter((text) => text.includes('***'))).toHaveLength(3)
    expect(JSON.stringify(model.calls)).not.toContain('hunter2')
  })
})

describe.each(placeKinds())('a hook that removes every message, $name', ({ make }) => {
  it.each(['processInput', 'processInputStep'])('[G2.44] %s: the run ends before the model is called', async (hook) => {
    for (const withMemory of [false, true]) {
      const model = scriptedModel(() => 'ok')
      const memory = new Memory({ workingMemory: { enabled: withMemory } })
      const clear = ({ messageList, source }: Args) => void (source !== 'context' && messageList.removeByIds(messageList.get.all.db().map(({ id }) => id)))
      const agent = new Agent({ id: 'a', model, memory, inputProcessors: [{ id: 'p', [hook]: clear } as unknown as Processor] })
      openHeed({ agent }, make().store())
      await (await agent.getMemory()).createThread({ threadId: 't', resourceId: 'ada' })
      if (withMemory) await (await agent.getMemory()).updateWorkingMemory({ resourceId: 'ada', workingMemory: '# Name: Sam' })
      expect(await rejection(agent.generate('Hello.', ask('t')))).toMatchObject({ code: 'processor_failed', message: expect.stringContaining(`'p' failed in ${hook}: it removed every message`) as string })
      expect(model.calls).toHaveLength(0)
    }
  })
})

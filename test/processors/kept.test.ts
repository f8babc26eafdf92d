import { describe, expect, it } from 'vitest'
import { Agent, createTool, InMemoryStore, type Message, type Processor, type ProcessorContext } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { refuseStrayRejections } from '../agent/asking.ts'
import { openHeed } from '../thread/places.ts'

const thread = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }

describe('what a hook has kept of a call', () => {
  refuseStrayRejections()

  it('sends signals for as long as the run lasts, also after its processor had the model asked again', async () => {
    let send: ProcessorContext['sendSignal'] | undefined
    let steps = 0
    const keeper: Processor = {
      id: 'keeper',
      processInput: ({ sendSignal }) => void (send = sendSignal),
      async processOutputStep({ abort }) {
        steps += 1
        if (steps === 1) abort('Not like this', { retry: true })
        if (steps === 2) await send?.({ type: 'reactive', contents: 'Kept.' })
      },
    }
    const agent = new Agent({ id: 'a', model: scriptedModel(['No.', 'Yes.']), inputProcessors: [keeper], outputProcessors: [keeper] })
    openHeed({ agent }, new InMemoryStore())
    expect(await agent.generate('Go.', { memory })).toMatchObject({ text: 'Yes.', finishReason: 'stop' })
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.filter(({ role, content }) => role === 'signal' && JSON.stringify(content).includes('Kept.'))).toHaveLength(1)
  })

  it('throws when it refuses while no hook is asked, and refuses nothing that is asked later', async () => {
    let refuse: ProcessorContext['abort'] | undefined
    const asked: string[] = []
    const keeper: Processor = {
      id: 'keeper',
      processInput: ({ abort }) => void (refuse = abort),
      processToolResult: () => void asked.push('tool result'),
      processOutputResult: () => void asked.push('output result'),
    }
    const look = createTool({ id: 'look', execute: () => refuse?.('late') })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look' }] }, 'Done.'])
    const agent = new Agent({ id: 'a', model, tools: { look }, inputProcessors: [keeper], outputProcessors: [keeper] })
    expect(await agent.generate('Go.')).toMatchObject({ text: 'Done.', finishReason: 'stop', tripwire: undefined })
    expect(asked).toEqual(['tool result', 'output result'])
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain('late')
  })

  it('[G2.42] is its own: an array that one hook empties after it returned is whole for the next, and an object that one changes is the next one\'s own', async () => {
    const seen: Record<string, string[]> = { first: [], second: [] }
    let kept: Message[] = []
    const noting = (id: 'first' | 'second', spoil: boolean): Processor => {
      const note = (where: string, args: ProcessorContext & { messages: Message[] }) => {
        kept.length = 0
        seen[id]?.push(`${where} ${args.runId === 'spoilt'} ${args.messages.map(({ role }) => role).join()}`)
        if (spoil) kept = Object.assign(args, { runId: 'spoilt' }).messages
      }
      return {
        id,
        processInput: (args) => note('input', args),
        processInputStep: (args) => note('input step', args),
        processOutputStep: (args) => note('output step', args),
        processOutputResult: (args) => note('output result', args),
      }
    }
    const processors = [noting('first', true), noting('second', false)]
    const agent = new Agent({ id: 'a', model: scriptedModel(['One.', 'Two.']), inputProcessors: processors, outputProcessors: processors })
    openHeed({ agent }, new InMemoryStore())
    await agent.generate('Go.', { memory })
    await agent.generate('Go on.', { memory })
    const turn = (shown: string) => ['input false user', `input step false ${shown}`, 'output step false assistant', 'output result false assistant']
    expect(seen).toEqual({ first: [...turn('user'), ...turn('user,assistant,user')], second: [...turn('user'), ...turn('user,assistant,user')] })
  })
})

import { describe, expect, it } from 'vitest'
import { Agent, Heed, InMemoryStore, createTool, type AgentInput } from '../../src/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { rejection } from './asking.ts'

const memory = { thread: 't', resource: 'u' }
const yes = { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c1', toolName: 'confirm', output: { type: 'text', value: 'yes' } }] } as const
const made = (...steps: ScriptedStep[]) => {
  const model = scriptedModel(steps)
  const agent = new Agent({ id: 'a', instructions: 'Be brief.', model })
  return { model, agent, heed: new Heed({ agents: { agent }, storage: new InMemoryStore() }) }
}

describe('input with nothing to answer', () => {
  it.each<[string, AgentInput]>([
    ['an empty text', ''],
    ['blanks', ' \n'],
    ['a message without words', { role: 'user', content: '' }],
    ['a message with an empty part', [{ role: 'user', content: [{ type: 'text', text: '' }] }]],
    ['an empty message after others', [{ role: 'user', content: 'Hello.' }, { role: 'assistant', content: 'Hi.' }, { role: 'user', content: '' }]],
    ['a message of an interface without parts', { id: 'm', role: 'user', parts: [] }],
  ])('is refused before anything is stored or asked: %s', async (_, input) => {
    const { model, agent, heed } = made('Hi.', 'Hi.')
    expect(await rejection(agent.generate(input))).toMatchObject({ code: 'invalid_message' })
    expect(await rejection(agent.stream(input))).toMatchObject({ code: 'invalid_message' })
    expect(await rejection(agent.generate(input, { memory }))).toMatchObject({ code: 'invalid_message' })
    expect(model.calls).toHaveLength(0)
    expect(await (await agent.getMemory()).getThreadById({ threadId: 't' })).toBeNull()
    await heed.close()
  })

  it('is refused when it is the result of a call that is not there', async () => {
    const { model, agent } = made('Hi.')
    expect(await rejection(agent.generate(yes))).toMatchObject({ code: 'invalid_message', message: expect.stringContaining('the call it answers') })
    expect(model.calls).toHaveLength(0)
  })
})

describe('input of more than 10 MB', () => {
  const large = 'A'.repeat(11 * 1024 * 1024)

  it('is refused where it would be stored, and taken where it would not', async () => {
    const { model, agent, heed } = made('Read.')
    const file = { role: 'user', content: [{ type: 'file', data: large, mediaType: 'image/png' }] } as const
    for (const input of [large, file]) expect(await rejection(agent.generate(input, { memory }))).toMatchObject({ code: 'invalid_message', details: { index: 0 } })
    expect(await (await agent.getMemory()).getThreadById({ threadId: 't' })).toBeNull()
    expect((await agent.generate(large)).text).toBe('Read.')
    expect(model.calls).toHaveLength(1)
    await heed.close()
  })
})

describe('input is taken', () => {
  it('when it is a file without words', async () => {
    const { model, agent } = made('A cat.')
    await agent.generate({ role: 'user', content: [{ type: 'file', data: 'aGk=', mediaType: 'image/png' }] })
    expect(model.calls[0]?.prompt.at(-1)).toMatchObject({ role: 'user', content: [{ type: 'file' }] })
  })

  it('when it is the result of a call that the thread has', async () => {
    const { model, agent, heed } = made({ toolCalls: [{ toolCallId: 'c1', toolName: 'confirm' }] }, 'Going.')
    const clientTools = { confirm: createTool({ id: 'confirm' }) }
    await agent.generate('Go.', { memory, clientTools })
    expect((await agent.generate(yes, { memory, clientTools })).text).toBe('Going.')
    expect(model.calls[1]?.prompt.at(-1)).toMatchObject({ role: 'tool', content: [{ toolCallId: 'c1' }] })
    await heed.close()
  })
})

describe('a run without a thread that waits', () => {
  it('can not be resumed by another process, and says what to do', async () => {
    const heed = new Heed({ storage: new InMemoryStore() })
    const agent = new Agent({ id: 'a', heed, model: scriptedModel([]) })
    const runId = 'of-another-process'
    const refused = { code: 'run_not_suspended', message: expect.stringContaining('memory: { thread'), details: { runId } }
    expect(await rejection(agent.approveToolCall({ runId }))).toMatchObject(refused)
    expect(await rejection(agent.declineToolCall({ runId }))).toMatchObject(refused)
    expect(await rejection(agent.resumeStream('yes', { runId }))).toMatchObject(refused)
    await heed.close()
  })

  it('is distinguished from one that was decided already', async () => {
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 1 })
    const agent = new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 'pay' }] }, 'Paid.']), tools: { pay } })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const { runId } = await agent.generate('Pay.', { memory })
    await (await agent.approveToolCall({ runId })).result
    const error = await rejection(agent.approveToolCall({ runId }))
    expect(error).toMatchObject({ code: 'run_not_suspended', message: expect.not.stringContaining('memory: { thread') })
    await heed.close()
  })
})

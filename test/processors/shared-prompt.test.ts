import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, fileKind } from '../thread/places.ts'

const memory = { thread: 't', resource: 'u' }
const place = fileKind()

/** Changes every text of messages for a model. */
function overwrite(messages: ReadonlyArray<{ content: unknown }>): void {
  for (const message of messages) {
    if (typeof message.content === 'string') message.content = 'changed'
    else for (const part of message.content as Array<{ text?: string }>) if (part.text !== undefined) part.text = 'changed'
  }
}

const hooks: Array<[string, Processor]> = [
  ['processInput', { id: 'p', processInput: ({ messageList }) => overwrite(messageList.get.all.prompt()) }],
  ['processInput, of each view', { id: 'p', processInput: ({ messageList: { get } }) => [get.remembered, get.input, get.context].forEach((view) => overwrite(view.prompt())) as never }],
  ['processInputStep', { id: 'p', processInputStep: ({ messageList }) => overwrite(messageList.get.all.prompt()) }],
  ['processOutputStep', { id: 'p', processOutputStep: ({ messageList }) => overwrite(messageList.get.all.prompt()) }],
  ['processOutputResult', { id: 'p', processOutputResult: ({ messageList }) => overwrite(messageList.get.all.prompt()) }],
]

describe('a program that changes the messages for a model', () => {
  it.each(hooks)('[G2.43] in %s changes neither this prompt nor a later one', async (_, processor) => {
    const model = scriptedModel(['One.', 'Two.', 'Three.'])
    const agent = new Agent({ id: 'a', model, memory: new Memory() })
    openHeed({ agent }, place.make().store())
    await agent.generate('First.', { memory })
    await agent.generate('Second.', { memory, inputProcessors: [processor], outputProcessors: [processor] })
    await agent.generate('Third.', { memory })
    expect(JSON.stringify(model.calls.map(({ prompt }) => prompt))).not.toContain('changed')
  })

  it('[G2.43] in a tool, or in a decision about its approval, changes no prompt', async () => {
    const look = createTool({
      id: 'look',
      requireApproval: (_input, { messages }) => (overwrite(messages), false),
      onInputAvailable: ({ messages }) => overwrite(messages),
      execute: async (_input, { messages }) => (overwrite(messages), 'seen'),
    })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.', 'Again.'])
    const agent = new Agent({ id: 'a', model, tools: { look }, memory: new Memory() })
    openHeed({ agent }, place.make().store())
    await agent.generate('First.', { memory })
    await agent.generate('Second.', { memory })
    expect(JSON.stringify(model.calls.map(({ prompt }) => prompt))).not.toContain('changed')
  })

  it('[G2.43] a change of the list of tools in one step changes no other step', async () => {
    const look = createTool({ id: 'look', description: 'Looks.', execute: async () => 'seen' })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', input: {} }] }, 'Done.'])
    const agent = new Agent({ id: 'a', model, tools: { look } })
    const processor: Processor = {
      id: 'p',
      processInputStep({ stepNumber, tools }) {
        if (stepNumber > 0) return
        for (const tool of tools as unknown as Array<{ description?: string }>) tool.description = 'changed'
        ;(tools as unknown as unknown[]).length = 0
      },
    }
    await agent.generate('Go.', { inputProcessors: [processor] })
    expect(model.calls.map(({ tools }) => tools?.map((tool) => ('description' in tool ? tool.description : undefined)))).toEqual([['Looks.'], ['Looks.']])
  })
})

import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, Heed, InMemoryStore, Memory, silentLogger, type MemoryConfig } from '../../../src/index.ts'
import { scriptedModel, type Script } from '../../../src/testing/index.ts'
import { thrownBy } from '../../agent/asking.ts'
import { texts } from '../../thread/said.ts'
import { kept } from '../kept.ts'

const where = { thread: 'conversation-1', resource: 'user-alice' }
let storage: InMemoryStore
beforeEach(() => void (storage = kept(new InMemoryStore())))

function desk(config: MemoryConfig, script: Script = () => 'Yes.') {
  const model = scriptedModel(script)
  const agent = new Agent({ id: 'assistant', name: 'Assistant', instructions: 'Be of help.', model, memory: new Memory(config) })
  kept(new Heed({ agents: { agent }, storage, logger: silentLogger }))
  return { agent, model }
}
const writes = (memory: unknown): Script => ({ index }) => (index === 0 ? { toolCalls: [{ toolName: 'updateWorkingMemory', input: { memory } }] } : 'Noted.')
const form = '# User Profile\n- **Name**:\n- **Location**:\n- **Interests**:\n- **Preferences**:\n- **Long-term Goals**:\n'

describe('every call about working memory', () => {
  it('turned on: the template is in the instructions, the tool is available, and the next thread of the user has the content', async () => {
    const { agent, model } = desk({ options: { workingMemory: { enabled: true } } }, writes(form.replace('**Name**:', '**Name**: Sam')))
    await agent.generate('I am Sam.', { memory: where })
    await agent.generate('Who am I?', { memory: { ...where, thread: 'conversation-2' } })
    const [first, , last] = model.calls
    expect(first?.tools?.map(({ name }) => name)).toEqual(['updateWorkingMemory'])
    expect(texts(first?.prompt ?? []).join('\n')).toContain('- **Long-term Goals**:')
    expect(texts(last?.prompt ?? []).at(-1)).toContain('- **Name**: Sam')
  })

  it('of scope thread: another thread doesn\'t know it; and the scopes don\'t see each other', async () => {
    const { agent, model } = desk({ options: { workingMemory: { enabled: true, scope: 'thread', template: '# Task\n- Goal:\n' } } }, writes('# Task\n- Goal: tea'))
    await agent.generate('Tea, please.', { memory: where })
    await agent.generate('And?', { memory: { ...where, thread: 'conversation-2' } })
    expect(texts(model.calls.at(-1)?.prompt ?? []).join()).not.toContain('Goal: tea')
    const memory = await agent.getMemory()
    expect(await memory.getWorkingMemory({ threadId: where.thread })).toBe('# Task\n- Goal: tea')
    const other = new Memory({ storage, workingMemory: { enabled: true } })
    expect(await other.getWorkingMemory({ threadId: where.thread, resourceId: where.resource })).toBeNull()
  })

  it.each([
    ['a long one', '\n# User Profile\n\n## Personal Info\n\n- Name:\n- Timezone:\n\n## Session State\n\n- Open Questions:\n  - [Question 1]\n'],
    ['a short one', 'User Facts:\n- Name:\n- Favorite Color:'],
    ['words alone', 'Important Details:\n\nKeep a short paragraph.'],
  ])('a template: %s', async (_, template) => {
    const { agent, model } = desk({ options: { workingMemory: { enabled: true, template } } })
    await agent.generate('Good day', { memory: where })
    expect(texts(model.calls[0]?.prompt ?? []).join('\n')).toContain(template.trim())
  })

  const schema = z.object({
    name: z.string().optional(),
    location: z.string().optional(),
    preferences: z.object({ style: z.string().optional(), goal: z.string().optional(), deadlines: z.array(z.string()).optional() }).optional(),
  })

  it('a schema: fields are merged, null removes, lists are replaced, and the model sees JSON', async () => {
    const { agent, model } = desk({ options: { workingMemory: { enabled: true, schema } } }, writes({ location: null, preferences: { goal: 'Launch', deadlines: ['2025-07-01'] } }))
    const memory = await agent.getMemory()
    const target = { threadId: where.thread, resourceId: where.resource }
    await memory.createThread(target)
    await memory.updateWorkingMemory({ ...target, workingMemory: { name: 'Sam', location: 'Berlin', preferences: { style: 'Formal', deadlines: ['a', 'b'] } } })
    await agent.generate('News.', { memory: where })
    expect(await memory.getWorkingMemory(target)).toEqual({ name: 'Sam', preferences: { style: 'Formal', goal: 'Launch', deadlines: ['2025-07-01'] } })
    await agent.generate('And?', { memory: where })
    expect(texts(model.calls[0]?.prompt ?? []).at(-1)).toContain('"name":"Sam"')
    await memory.updateWorkingMemory({ ...target, workingMemory: JSON.stringify({ name: 'Max' }) })
    expect(await memory.getWorkingMemory(target)).toMatchObject({ name: 'Max', preferences: { goal: 'Launch' } })
  })

  it('a template and a schema are not both taken', () => {
    expect(thrownBy(() => new Memory({ workingMemory: { enabled: true, schema, template: form } }))).toMatchObject({ code: 'invalid_argument', details: { option: 'workingMemory' } })
    expect(thrownBy(() => new Memory({ workingMemory: { schema: 'name: string' as never } }))).toMatchObject({ code: 'invalid_schema' })
  })

  it('a first one with the thread\'s metadata, another with updateThread and the metadata that was read, and one directly', async () => {
    const { agent, model } = desk({ options: { workingMemory: { enabled: true } } })
    const memory = await agent.getMemory()
    const thread = await memory.createThread({ threadId: 'thread-1', resourceId: 'user-4', title: 'Medical', metadata: { ward: 3, workingMemory: '# Patient\n- Blood Type: O+\n- Allergies: Penicillin\n' } })
    const target = { memory: { thread: thread.id, resource: 'user-4' } }
    await agent.generate('What is my blood type?', target)
    expect(texts(model.calls[0]?.prompt ?? []).at(-1)).toContain('Blood Type: O+')
    await memory.updateThread({ id: 'thread-1', title: thread.title, metadata: { ...thread.metadata, workingMemory: '# Patient\n- Blood Type: O+\n- Allergies: Penicillin, Ibuprofen\n' } })
    await agent.generate('My allergies?', target)
    expect(texts(model.calls[1]?.prompt ?? []).join('\n')).toContain('Ibuprofen')
    expect((await memory.getThreadById({ threadId: 'thread-1' }))?.metadata).toMatchObject({ ward: 3 })
    await memory.updateWorkingMemory({ threadId: 'thread-1', resourceId: 'user-4', workingMemory: 'Something else.' })
    expect(await memory.getWorkingMemory({ threadId: 'thread-1', resourceId: 'user-4' })).toBe('Something else.')
  })

  it('readOnly in a call: shown, and no tool', async () => {
    const { agent, model } = desk({ options: { workingMemory: { enabled: true } } })
    const memory = await agent.getMemory()
    await memory.updateWorkingMemory({ resourceId: where.resource, workingMemory: '- Name: Alice' })
    await agent.generate('What do you know of me?', { memory: { ...where, options: { readOnly: true } } })
    expect(model.calls[0]?.tools ?? []).toEqual([])
    expect(texts(model.calls[0]?.prompt ?? []).join('\n')).toContain('- Name: Alice')
    expect((await memory.recall({ threadId: where.thread })).messages).toHaveLength(2)
  })
})

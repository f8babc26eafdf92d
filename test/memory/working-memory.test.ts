import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Memory, type AgentConfig, type MemoryOptions, type Message, type WorkingMemoryOptions } from '../../src/index.ts'
import { WorkingMemory, type Processor } from '../../src/processors/index.ts'
import { scriptedModel, type Script, type ScriptedModel } from '../../src/testing/index.ts'
import { rejection, thrownBy } from '../agent/asking.ts'
import { openHeed, placeKinds, type Place } from '../thread/places.ts'
import { gate, soon, texts } from '../thread/said.ts'

const where = { thread: 'chat-1', resource: 'user-7' }
const target = { threadId: 'chat-1', resourceId: 'user-7' }
const ask = { memory: where }
const update = (memory: unknown, more: object = {}) => ({ toolCalls: [{ toolName: 'updateWorkingMemory', input: { memory, ...more } }] })
const profile = z.object({
  name: z.string().optional(),
  city: z.string().optional(),
  prefs: z.object({ tone: z.string().optional(), days: z.array(z.string()).optional() }).optional(),
})

interface Desk {
  agent: Agent
  model: ScriptedModel
  memory: Memory
  close(): Promise<void>
}

async function desk(place: Place, script: Script, options: MemoryOptions, more: Partial<AgentConfig> = {}): Promise<Desk> {
  const model = scriptedModel(script)
  const agent = new Agent({ id: 'clerk', instructions: 'Be brief.', model, memory: new Memory({ options }), ...more })
  const heed = openHeed({ agent }, place.store())
  return { agent, model, memory: await agent.getMemory(), close: () => heed.close() }
}

const kinds = placeKinds()
const blocks = (prompt: LanguageModelV4Prompt) => texts(prompt).filter((text) => text.startsWith('user: <working-memory')).map((text) => text.slice(6))
const toolResults = (prompt: LanguageModelV4Prompt) => texts(prompt).filter((text) => text.startsWith('tool: '))
const toolNames = (model: ScriptedModel) => (model.calls.at(-1)?.tools ?? []).map(({ name }) => name)
const said = (messages: readonly Message[]) => messages.map(({ content }) => content.parts.map((part) => (part.type === 'text' ? part.text : part.type)).join(''))

describe.each(kinds)('working memory, $name', ({ make }) => {
  it('[M1.7] [M2.11] of the old owner is not shown to the new owner of a thread', async () => {
    const { agent, model, memory } = await desk(make(), () => 'Yes.', { workingMemory: { enabled: true } })
    await memory.updateWorkingMemory({ ...target, workingMemory: 'The PIN is 1234.' })
    await agent.generate('Hi', ask)
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('1234')
    await memory.transferThread({ threadId: 'chat-1', resourceId: 'user-8', from: 'user-7' })
    for (const words of ['Hi', 'Again']) {
      await agent.generate(words, { memory: { thread: 'chat-1', resource: 'user-8' } })
      expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('1234')
    }
    await memory.updateWorkingMemory({ threadId: 'chat-1', resourceId: 'user-8', workingMemory: 'Likes tea.' })
    await agent.generate('And now?', { memory: { thread: 'chat-1', resource: 'user-8' } })
    expect(blocks(model.calls.at(-1)?.prompt ?? [])).toEqual(['<working-memory>\nLikes tea.\n</working-memory>'])
    expect(await memory.getWorkingMemory({ resourceId: 'user-7' })).toBe('The PIN is 1234.')
  })

  it('[M2.15] is changed by a call without the wrapper, or with JSON text, that can only mean one thing', async () => {
    const call = (input: object) => ({ toolCalls: [{ toolName: 'updateWorkingMemory', input }] })
    const script = [call({ name: 'Sam' }), call({ memory: '{"city":"Oslo"}' }), call({ memory: { prefs: { tone: 'dry' } } }), call({ planet: 'Mars' }), call({ memory: '["x"]' }), 'Done.']
    const { agent, model, memory } = await desk(make(), script, { workingMemory: { enabled: true, schema: profile } })
    await agent.generate('Hi', ask)
    expect(await memory.getWorkingMemory(target)).toEqual({ name: 'Sam', city: 'Oslo', prefs: { tone: 'dry' } })
    const results = toolResults(model.calls.at(-1)?.prompt ?? [])
    expect(results.map((result) => /success/.test(result))).toEqual([true, true, true, false, false])
    const { definitions } = { definitions: model.calls[0]?.tools ?? [] }
    expect(JSON.stringify(definitions)).toContain('Only the fields that change')
  })

  it('[M2.15] is changed by a call whose whole input is JSON text', async () => {
    const call = (input: unknown) => ({ toolCalls: [{ toolName: 'updateWorkingMemory', inputText: JSON.stringify(input) }] })
    const script = [call('{"name":"Sam"}'), call('{"memory":{"city":"Oslo"}}'), call('Sam lives in Oslo.'), 'Done.']
    const fields = await desk(make(), script, { workingMemory: { enabled: true, schema: profile } })
    await fields.agent.generate('Hi', ask)
    expect(await fields.memory.getWorkingMemory(target)).toEqual({ name: 'Sam', city: 'Oslo' })
    expect(toolResults(fields.model.calls.at(-1)?.prompt ?? []).map((result) => /success/.test(result))).toEqual([true, true, false])
    const text = await desk(make(), [call('{"memory":"# Notes"}'), 'Done.'], { workingMemory: { enabled: true } })
    await text.agent.generate('Hi', ask)
    expect(await text.memory.getWorkingMemory(target)).toBe('# Notes')
  })

  it('[M2.15] that is a text is changed by a call whose whole input is a text', async () => {
    const call = (inputText: string) => ({ toolCalls: [{ toolName: 'updateWorkingMemory', inputText }] })
    const script = [call(JSON.stringify('# Name: Sam')), call('# Name: S'), call('["# Name: Tom"]'), 'Done.']
    const { agent, model, memory } = await desk(make(), script, { workingMemory: { enabled: true } })
    await agent.generate('Hi', ask)
    expect(await memory.getWorkingMemory(target)).toBe('# Name: Sam')
    expect(toolResults(model.calls.at(-1)?.prompt ?? []).map((result) => /success/.test(result))).toEqual([true, false, false])
    // Later prompts have the call as providers require it.
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain('"input":{"memory":"# Name: Sam"}')
  })

  it('[M2.9] is explained at the start of the prompt and shown at its end; readers of the thread see neither', async () => {
    const { agent, model, memory } = await desk(make(), ['Hi.', update('# User Profile\n- **Name**: Sam'), 'Hello Sam.', 'Still Sam.'], { workingMemory: { enabled: true } })
    await agent.generate('Hi', ask)
    expect(blocks(model.calls[0]?.prompt ?? [])).toEqual([])
    expect(texts(model.calls[0]?.prompt ?? [])[1]).toMatch(/^system: You have a working memory[^]*# User Profile\n- \*\*Name\*\*:/)
    await agent.generate('I am Sam.', ask)
    await agent.generate('Who am I?', ask)
    const [, , afterUpdate, nextTurn] = model.calls.map(({ prompt }) => prompt)
    expect(texts(afterUpdate ?? []).at(-1)).toBe('user: <working-memory>\n# User Profile\n- **Name**: Sam\n</working-memory>')
    expect(blocks(nextTurn ?? [])).toHaveLength(1)
    expect(await memory.getWorkingMemory(target)).toBe('# User Profile\n- **Name**: Sam')
    const { messages } = await memory.recall({ ...target, perPage: false })
    expect(said(messages).join()).not.toContain('<working-memory')
    expect(messages.map(({ role }) => role)).not.toContain('context')
  })

  it('[M2.9] shows changes as deltas, and the whole again when the window lost it', async () => {
    const long = Array.from({ length: 12 }, (_, line) => `- fact ${line}: something worth knowing`)
    const place = make()
    const { agent, model, memory } = await desk(place, () => 'Yes.', { workingMemory: { enabled: true }, lastMessages: 2 })
    await memory.updateWorkingMemory({ ...target, workingMemory: long.join('\n') })
    await agent.generate('one', ask)
    await memory.updateWorkingMemory({ ...target, workingMemory: long.with(4, '- fact 4: <b> & more').join('\n') })
    await agent.generate('two', ask)
    expect(blocks(model.calls[1]?.prompt ?? [])).toEqual([
      `<working-memory>\n${long.join('\n')}\n</working-memory>`,
      '<working-memory mode="delta">\n  - fact 3: something worth knowing\n- - fact 4: something worth knowing\n+ - fact 4: &lt;b&gt; &amp; more\n</working-memory>',
    ])
    for (const turn of ['three', 'four', 'five']) {
      await agent.generate(turn, ask)
      expect(blocks(model.calls.at(-1)?.prompt ?? []).filter((block) => block.startsWith('<working-memory>'))).toHaveLength(1)
      expect(blocks(model.calls.at(-1)?.prompt ?? []).join()).toContain('fact 11')
    }
    expect(texts(model.calls.at(-1)?.prompt ?? [])).not.toContain('user: one')
  })

  it('[M2.9] [P1.2] every call begins with the bytes of the one before, through updates, turns and a restart', async () => {
    const place = make()
    const options: MemoryOptions = { workingMemory: { schema: profile }, lastMessages: 50 }
    const first = await desk(place, [update({ name: 'Sam', city: 'Berlin' }), 'Noted.', update({ city: null }), 'Gone.'], options)
    await first.agent.generate('I am Sam from Berlin.', ask)
    await first.agent.generate('I moved.', ask)
    await first.close()
    const second = await desk(place, [update({ city: 'Rome' }), 'Rome.', 'Yes.'], options)
    await second.memory.updateWorkingMemory({ ...target, workingMemory: { prefs: { tone: 'dry' } } })
    await second.agent.generate('Rome now.', ask)
    await second.agent.generate('Good?', ask)
    const prompts = [...first.model.calls, ...second.model.calls].map(({ prompt, tools }) => ({ head: JSON.stringify(tools), body: prompt.map((message) => JSON.stringify(message)) }))
    expect(prompts).toHaveLength(7)
    for (const [index, { head, body }] of prompts.entries()) {
      const before = prompts[index - 1]
      if (!before) continue
      expect(head).toBe(before.head)
      expect(body.slice(0, before.body.length)).toEqual(before.body)
    }
    expect(await second.memory.getWorkingMemory(target)).toEqual({ name: 'Sam', city: 'Rome', prefs: { tone: 'dry' } })
  })

  it('[M2.10] with a schema merges: fields stay, null and delete remove, lists are replaced', async () => {
    const { agent, memory } = await desk(make(), [
      update({ name: 'Sam', city: 'Berlin', prefs: { tone: 'dry', days: ['Mon', 'Tue'] } }),
      update({ city: null, prefs: { days: ['Fri'] } }),
      update({}, { delete: ['prefs.tone', 'nothing.there'] }),
      'Done.',
    ], { workingMemory: { enabled: true, schema: profile } })
    await agent.generate('Sort me.', ask)
    expect(await memory.getWorkingMemory<z.infer<typeof profile>>(target)).toEqual({ name: 'Sam', prefs: { days: ['Fri'] } })
  })

  it('[M2.10] keeps every field of parallel calls in one step', async () => {
    const calls = [{ name: 'Sam' }, { city: 'Berlin' }, { prefs: { tone: 'dry' } }, { prefs: { days: ['Mon'] } }]
    const step = { toolCalls: calls.map((memory) => ({ toolName: 'updateWorkingMemory', input: { memory } })) }
    const { agent, memory } = await desk(make(), [step, 'Done.'], { workingMemory: { schema: profile } })
    await agent.generate('Everything about me at once.', ask)
    expect(await memory.getWorkingMemory(target)).toEqual({ name: 'Sam', city: 'Berlin', prefs: { tone: 'dry', days: ['Mon'] } })
  })

  it('[M2.10] returns the error of an invalid change to the model, and changes nothing', async () => {
    const { agent, model, memory } = await desk(make(), [update({ name: 7 }), update({ unknown: 'x' }), update({ name: 'x'.repeat(80) }), 'Sorry.'], {
      workingMemory: { schema: profile, maxLength: 60 },
    })
    await agent.generate('Go.', ask)
    const [type, name, size] = toolResults(model.calls[3]?.prompt ?? [])
    expect(type).toMatch(/memory\.name/)
    expect(name).toMatch(/additional properties/)
    expect(size).toMatch(/91 characters; 60 are allowed.*Shorten it/)
    expect(await memory.getWorkingMemory(target)).toBeNull()
  })

  it('[M2.11] is shared by the threads of a resource, or each thread\'s own', async () => {
    for (const [scope, seen] of [['resource', 1], ['thread', 0]] as const) {
      const { agent, model, memory, close } = await desk(make(), [update('Name: Sam'), 'Ok.', 'Hm.', 'Who?'], { workingMemory: { scope, template: 'Name:' } })
      await agent.generate('I am Sam.', ask)
      await agent.generate('And I?', { memory: { thread: 'chat-2', resource: 'user-7' } })
      expect(blocks(model.calls.at(-1)?.prompt ?? [])).toHaveLength(seen)
      await agent.generate('And I?', { memory: { thread: 'chat-3', resource: 'user-8' } })
      expect(blocks(model.calls.at(-1)?.prompt ?? [])).toHaveLength(0)
      expect(await memory.getWorkingMemory({ threadId: 'chat-1' })).toBe('Name: Sam')
      expect(await rejection(memory.getWorkingMemory({ threadId: 'chat-1', resourceId: 'user-8' }))).toMatchObject({ code: 'thread_forbidden' })
      await close()
    }
  })

  it('[M2.12] is set by a thread\'s metadata, which then does not contain it', async () => {
    for (const scope of ['resource', 'thread'] as const) {
      const { agent, model, memory, close } = await desk(make(), () => 'O+.', { workingMemory: { scope } })
      const thread = await memory.createThread({ ...target, title: 'Consultation', metadata: { ward: 3, workingMemory: '# Patient\n- Blood: O+' } })
      expect(thread.metadata).toEqual({ ward: 3 })
      await agent.generate('My blood type?', ask)
      expect(blocks(model.calls[0]?.prompt ?? [])).toEqual(['<working-memory>\n# Patient\n- Blood: O+\n</working-memory>'])
      const other = { id: 'chat-2', metadata: { workingMemory: '# Patient\n- Blood: A' } }
      await agent.generate('Mine?', { memory: { thread: other, resource: 'user-8' } })
      expect(blocks(model.calls[1]?.prompt ?? [])).toEqual(['<working-memory>\n# Patient\n- Blood: A\n</working-memory>'])
      const tooLong = { threadId: 'chat-3', resourceId: 'user-9', metadata: { workingMemory: 'x'.repeat(20_000) } }
      expect(await rejection(memory.createThread(tooLong))).toMatchObject({ code: 'working_memory_too_large' })
      expect(await memory.getThreadById({ threadId: 'chat-3' })).toBeNull()
      await close()
    }
  })

  it('[M2.12] is changed by updateThread, and never by metadata that was read before', async () => {
    const { memory } = await desk(make(), [], { workingMemory: { scope: 'thread' } })
    const thread = await memory.createThread({ ...target, metadata: { ward: 3, workingMemory: 'one' } })
    await memory.updateWorkingMemory({ ...target, workingMemory: 'two' })
    await memory.updateThread({ id: thread.id, title: 'Ward', metadata: { ...thread.metadata, ward: 4 } })
    expect(await memory.getWorkingMemory(target)).toBe('two')
    const updated = await memory.updateThread({ id: thread.id, title: 'Ward', metadata: { ...thread.metadata, workingMemory: 'three' } })
    expect([updated.metadata, await memory.getWorkingMemory(target)]).toEqual([{ ward: 3 }, 'three'])
    await memory.updateThread({ id: thread.id, title: 'Ward', metadata: { workingMemory: null } })
    expect(await memory.getWorkingMemory(target)).toBe('')
  })

  it('[M2.4] changed by a step that is done again after a restart has one version of it', async () => {
    const place = make()
    const hang = gate()
    const stuck = createTool({ id: 'stuck', idempotent: true, execute: () => hang.promise.then(() => 'never') })
    const step = { toolCalls: [...update('Name: Sam').toolCalls, { toolName: 'stuck', input: {} }] }
    const first = await desk(place, [step], { workingMemory: { template: 'Name:' } }, { tools: { stuck } })
    await first.agent.sendMessage('I am Sam.', target).outcome
    await soon(() => first.memory.getWorkingMemory(target)).toBe('Name: Sam')
    await first.close()
    const free = createTool({ id: 'stuck', idempotent: true, execute: () => 'done' })
    const second = await desk(place, ['Hello Sam.'], { workingMemory: { template: 'Name:' } }, { tools: { stuck: free } })
    await second.agent.activeRun(target)
    await soon(() => second.model.calls.length).toBe(1)
    expect(toolResults(second.model.calls[0]?.prompt ?? []).join()).toContain('"version":1')
    expect(await second.memory.listWorkingMemoryVersions(target)).toHaveLength(1)
  })

  it('[M2.13] read-only is shown and has no tool; messages are stored all the same', async () => {
    const place = make()
    const { agent, model, memory } = await desk(place, () => 'You are Sam.', { workingMemory: { enabled: true } })
    await memory.updateWorkingMemory({ ...target, workingMemory: 'Name: Sam' })
    await agent.generate('Who am I?', { memory: { ...where, options: { readOnly: true } } })
    expect(blocks(model.calls[0]?.prompt ?? [])).toEqual(['<working-memory>\nName: Sam\n</working-memory>'])
    expect(toolNames(model)).toEqual([])
    expect((await memory.recall(target)).messages).toHaveLength(2)
    await agent.generate('And now?', ask)
    expect(toolNames(model)).toEqual(['updateWorkingMemory'])
    const frozen = await desk(place, [], { workingMemory: { enabled: true }, readOnly: true })
    expect(await rejection(frozen.memory.updateWorkingMemory({ ...target, workingMemory: 'x' }))).toMatchObject({ code: 'read_only' })
    expect(await rejection(frozen.memory.undoWorkingMemory(target))).toMatchObject({ code: 'read_only' })
    expect(await rejection(frozen.memory.createThread({ resourceId: 'user-7', metadata: { workingMemory: 'x' } }))).toMatchObject({ code: 'read_only' })
    expect(await frozen.memory.getWorkingMemory(target)).toBe('Name: Sam')
  })

  it('[M2.7] of a run that a guardrail rejects is restored, and the run saw its own change', async () => {
    const seen: string[] = []
    const guard: Processor = { id: 'guard', processOutputResult: ({ abort, result }) => (result.text === 'Bad.' ? abort('no') : undefined) }
    const { agent, model, memory } = await desk(make(), [update('Name: Eve'), 'Bad.', update('Name: Sam'), 'Good.', 'Fine.'], { workingMemory: { template: 'Name:' } }, { outputProcessors: [guard] })
    expect((await agent.generate('I am Eve.', ask)).tripwire?.reason).toBe('no')
    seen.push(...blocks(model.calls[1]?.prompt ?? []))
    expect(await memory.getWorkingMemory(target)).toBeNull()
    await agent.generate('I am Sam.', ask)
    expect(await memory.getWorkingMemory(target)).toBe('Name: Sam')
    await agent.generate('So?', ask)
    expect(seen).toEqual(['<working-memory>\nName: Eve\n</working-memory>'])
    expect(blocks(model.calls[4]?.prompt ?? [])).toEqual(['<working-memory>\nName: Sam\n</working-memory>'])
  })

  it('[M2.4] [M2.3] keeps versions that can be listed, undone and compared', async () => {
    const { memory } = await desk(make(), [], { workingMemory: { schema: profile } })
    const change = (workingMemory: object, more: object = {}) => memory.updateWorkingMemory({ ...target, workingMemory: workingMemory as never, ...more })
    expect(await change({ name: 'Sam' }, { expectedVersion: 0 })).toMatchObject({ version: 1 })
    await change({ city: 'Berlin' })
    expect(await rejection(change({ city: 'Rome' }, { expectedVersion: 1 }))).toMatchObject({ code: 'working_memory_conflict', details: { version: 2 } })
    expect((await memory.listWorkingMemoryVersions(target)).map(({ version, workingMemory }) => [version, workingMemory])).toEqual([
      [2, { name: 'Sam', city: 'Berlin' }],
      [1, { name: 'Sam' }],
    ])
    expect(await memory.undoWorkingMemory(target)).toMatchObject({ version: 3, workingMemory: { name: 'Sam' } })
    expect(await memory.undoWorkingMemory({ ...target, version: 2 })).toMatchObject({ version: 4, workingMemory: { name: 'Sam', city: 'Berlin' } })
    expect(await change({ prefs: { tone: 'dry' } }, { replace: true })).toMatchObject({ workingMemory: { prefs: { tone: 'dry' } } })
    expect(await memory.updateWorkingMemory({ ...target, workingMemory: '{"name":"Ada"}', delete: ['prefs'] })).toMatchObject({ workingMemory: { name: 'Ada' } })
    expect(await rejection(change({ name: 7 }))).toMatchObject({ code: 'invalid_argument' })
    expect(await rejection(memory.updateWorkingMemory({ ...target, workingMemory: 'not JSON' }))).toMatchObject({ code: 'invalid_argument' })
    await Promise.all(['name', 'city'].flatMap((field) => [change({ [field]: field })]))
    expect(await memory.getWorkingMemory(target)).toEqual({ name: 'name', city: 'city' })
  })

  it('[G3.5] in a list replaces the memory\'s, and a foreign processor with its id disables it', async () => {
    const byHand = await desk(make(), [update('Goal: ship'), 'Ok.'], { workingMemory: { schema: profile } }, { inputProcessors: [new WorkingMemory({ scope: 'thread', template: 'Goal:' })] })
    await byHand.agent.generate('Ship it.', ask)
    expect(blocks(byHand.model.calls[1]?.prompt ?? [])).toEqual(['<working-memory>\nGoal: ship\n</working-memory>'])
    const stranger = await desk(make(), ['Ok.'], { workingMemory: { enabled: true } }, { inputProcessors: [{ id: 'working-memory' }] })
    await stranger.agent.generate('Ship it.', ask)
    expect(toolNames(stranger.model)).toEqual([])
    const off = await desk(make(), ['Ok.'], { workingMemory: { enabled: true } })
    await off.agent.generate('Ship it.', { memory: { ...where, options: { workingMemory: { enabled: false } } } })
    expect([toolNames(off.model), off.model.calls[0]?.prompt.length]).toEqual([[], 2])
  })
})

describe('bad input', () => {
  const cases: Array<[string, unknown, string, string]> = [
    ['both a template and a schema', { template: 'x', schema: profile }, 'invalid_argument', 'workingMemory'],
    ['an unknown kind of schema', { schema: { some: 'thing' } }, 'invalid_schema', ''],
    ['an unknown scope', { scope: 'world' }, 'invalid_argument', 'workingMemory.scope'],
    ['an empty template', { template: ' ' }, 'invalid_argument', 'workingMemory.template'],
    ['a limit of 0', { maxLength: 0 }, 'invalid_argument', 'workingMemory.maxLength'],
    ['an unknown option', { versions: 3 }, 'unsupported_option', 'workingMemory.versions'],
    ['no object', true, 'invalid_argument', 'workingMemory'],
  ]

  it.each(cases)('[M2.14] %s is rejected by name, in a memory, a call and a processor', async (_, given, code, option) => {
    const workingMemory = given as WorkingMemoryOptions
    const wanted = { code, ...(option === '' ? {} : { details: { option } }) }
    expect(thrownBy(() => new Memory({ workingMemory }))).toMatchObject(wanted)
    expect(thrownBy(() => new WorkingMemory(workingMemory))).toMatchObject(wanted)
    const agent = new Agent({ id: 'a', model: scriptedModel([]), memory: new Memory() })
    expect(await rejection(agent.generate('x', { memory: { ...where, options: { workingMemory } } }))).toMatchObject(wanted)
  })

  it('[M2.14] a schema of no object, a missing resource and a memory without working memory are rejected by name', async () => {
    const [kind] = kinds
    const list = await desk(kind?.make() as Place, [], { workingMemory: { schema: z.array(z.string()) } })
    expect(await rejection(list.memory.updateWorkingMemory({ ...target, workingMemory: {} }))).toMatchObject({ code: 'invalid_schema' })
    const text = await desk(kind?.make() as Place, [], { workingMemory: { enabled: true } })
    expect(await rejection(text.memory.updateWorkingMemory({ workingMemory: 'x' }))).toMatchObject({ code: 'invalid_argument', details: { field: 'resourceId' } })
    expect(await rejection(text.memory.updateWorkingMemory({ ...target, workingMemory: {} }))).toMatchObject({ code: 'invalid_argument', details: { field: 'workingMemory' } })
    const none = await desk(kind?.make() as Place, [], {})
    expect(await rejection(none.memory.getWorkingMemory(target))).toMatchObject({ code: 'invalid_argument', details: { option: 'workingMemory' } })
  })
})

describe('a schema that requires fields', () => {
  it('[M2.10] is held to field by field: what is not known yet may be missing, what is given must fit', async () => {
    const schema = z.object({ name: z.string(), address: z.object({ city: z.string(), zip: z.string() }) })
    const [kind] = kinds
    if (!kind) throw new Error('There is no place to try it on.')
    const { memory } = await desk(kind.make(), () => 'Noted.', { workingMemory: { schema } })
    await memory.updateWorkingMemory({ ...target, workingMemory: { address: { city: 'Berlin' } } })
    expect(await memory.getWorkingMemory(target)).toEqual({ address: { city: 'Berlin' } })
    expect(await rejection(memory.updateWorkingMemory({ ...target, workingMemory: { address: { zip: 10_115 } } }))).toMatchObject({ code: 'invalid_argument' })
    await memory.updateWorkingMemory({ ...target, workingMemory: { name: 'Sam', address: null } })
    expect(await memory.getWorkingMemory(target)).toEqual({ name: 'Sam' })
  })

  it.each(kinds)('[M2.10] holds the whole to what only the schema knows, and merges what may be null and records, $name', async ({ make }) => {
    const schema = z.object({
      email: z.string().refine((text) => text.includes('@'), 'no email').optional(),
      from: z.number().optional(),
      to: z.number().optional(),
      place: z.object({ city: z.string(), zip: z.string() }).nullable().optional(),
      pets: z.record(z.string(), z.object({ kind: z.string(), age: z.number() })).optional(),
    }).refine(({ from = 0, to = 9 }) => from <= to, 'from is after to')
    const { agent, model, memory, close } = await desk(make(), [update({ email: 'nobody' }), update({ from: 5 }), 'Done.'], { workingMemory: { schema } })
    const start = { to: 3, place: { city: 'Bern', zip: '3000' }, pets: { rex: { kind: 'dog', age: 3 } } }
    await memory.updateWorkingMemory({ ...target, workingMemory: start })
    await agent.generate('Hello', ask)
    const [first, second] = toolResults(model.calls.at(-1)?.prompt ?? [])
    expect([first, second]).toEqual([expect.stringContaining('no email'), expect.stringContaining('from is after to')])
    expect(await rejection(memory.updateWorkingMemory({ ...target, workingMemory: { email: 'nobody' } }))).toMatchObject({ code: 'invalid_argument', details: { field: 'workingMemory' } })
    expect(await rejection(memory.createThread({ threadId: 'new', resourceId: 'user-7', metadata: { workingMemory: { from: 4 } } }))).toMatchObject({ code: 'invalid_argument' })
    expect(await memory.getWorkingMemory(target)).toEqual(start)
    await memory.updateWorkingMemory({ ...target, workingMemory: { place: { zip: '3001' }, pets: { rex: { age: 4 } } } })
    expect(await memory.getWorkingMemory(target)).toEqual({ to: 3, place: { city: 'Bern', zip: '3001' }, pets: { rex: { kind: 'dog', age: 4 } } })
    await close()
  })
})

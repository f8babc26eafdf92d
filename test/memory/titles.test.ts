import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Agent, Memory, systemClock, type AgentConfig, type MemoryOptions } from '../../src/index.ts'
import { cleanTitle } from '../../src/memory/titles.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock, type Script, type ScriptedModel } from '../../src/testing/index.ts'
import { rejection, thrownBy } from '../agent/asking.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { gate, soon, texts } from '../thread/said.ts'

const where = { thread: 'chat-1', resource: 'user-7' }
const threadId = 'chat-1'
const ask = { memory: where }

function clerk(writer: ScriptedModel, options: MemoryOptions = {}, more: Partial<AgentConfig> = {}): Agent {
  const model = scriptedModel(() => 'By train.')
  return new Agent({ id: 'clerk', model, memory: new Memory({ options: { generateTitle: { model: writer }, ...options } }), ...more })
}

async function titleIn(agent: Agent, id = threadId): Promise<string | undefined> {
  return (await (await agent.getMemory()).getThreadById({ threadId: id }))?.title
}

const writes = (script: Script = () => '"Going to Rome."') => scriptedModel(script)

describe.each(sharedPlaceKinds())('titles, $name', ({ make }) => {
  it('[M3.3] are made from the user\'s first message, after the answer, and once', async () => {
    const hold = gate()
    const writer = scriptedModel(async () => {
      await hold.promise
      return '**Going to Rome**\nIs that right?'
    })
    const agent = clerk(writer)
    openHeed({ agent }, make().store())
    const { text } = await agent.generate('How do I get to Rome?', ask)
    expect([text, await titleIn(agent)]).toEqual(['By train.', ''])
    await agent.generate('And back?', ask)
    hold.open()
    await soon(() => titleIn(agent)).toBe('Going to Rome')
    await agent.generate('Thanks.', ask)
    expect(writer.calls).toHaveLength(1)
    const [system, words] = texts(writer.calls[0]?.prompt ?? [])
    expect(system).toMatch(/^system: Write a title/)
    expect(words).toBe('user: How do I get to Rome?')
  })

  it('[M3.3] come from the agent\'s own model, or from one with instructions of its own; also on woken threads and by a call\'s options', async () => {
    const model = scriptedModel((call) => (texts(call.prompt)[0]?.startsWith('system: Write a title') ? 'Rome' : 'By train.'))
    const own = new Agent({ id: 'own', model, memory: new Memory({ generateTitle: true }) })
    const writer = writes(() => 'Roma')
    const short = clerk(writer, { generateTitle: { model: () => writer, instructions: () => 'One word.' } })
    const plain = new Agent({ id: 'plain', model, memory: new Memory() })
    openHeed({ own, short, plain }, make().store())
    await own.sendMessage('To Rome?', { threadId, resourceId: 'user-7' }).outcome
    await soon(() => titleIn(own)).toBe('Rome')
    await short.generate('To Rome?', { memory: { thread: 'chat-2', resource: 'user-7' } })
    await soon(() => titleIn(short, 'chat-2')).toBe('Roma')
    expect(texts(writer.calls[0]?.prompt ?? [])[0]).toBe('system: One word.')
    await plain.generate('To Rome?', { memory: { thread: 'chat-3', resource: 'user-7', options: { generateTitle: true } } })
    await soon(() => titleIn(plain, 'chat-3')).toBe('Rome')
  })

  it('[M3.2] keep an existing title, and everything else of the thread', async () => {
    const hold = gate()
    const agent = clerk(scriptedModel(async () => {
      await hold.promise
      return 'Made'
    }))
    const store = make().store()
    const heed = openHeed({ agent }, store)
    await agent.generate('Hi', { memory: { ...where, thread: { id: 'named', title: 'Mine' } } })
    await agent.generate('Hi', ask)
    const before = await store.patchThread({ threadId }, { metadata: { meanwhile: true } })
    hold.open()
    await soon(() => titleIn(agent)).toBe('Made')
    expect(await store.getThread({ threadId })).toEqual({ ...before, title: 'Made' })
    expect(await titleIn(agent, 'named')).toBe('Mine')
    await heed.tick()
  })

  it('[M3.4] that fail are retried later, three times in all; the run is not affected', async () => {
    const clock = virtualClock()
    const writer = writes(() => {
      throw new Error('no titles today')
    })
    const place = make({ clock })
    const agent = clerk(writer, { generateTitle: { model: [{ model: writer, maxRetries: 0 }] } })
    const heed = openHeed({ agent }, place.store(), { clock })
    expect((await agent.generate('Hi', ask)).text).toBe('By train.')
    await soon(() => writer.calls.length).toBe(1)
    await heed.tick()
    expect(writer.calls).toHaveLength(1)
    for (let turn = 0; turn < 6; turn++) {
      await clock.advance(120_000)
      await heed.tick()
    }
    expect(writer.calls).toHaveLength(3)
    expect(await titleIn(agent)).toBe('')
  })

  it('[M3.4] that a process could not finish are made by the next one', async () => {
    const place = make()
    const never = scriptedModel(() => new Promise<string>(() => {}))
    const first = clerk(never)
    const heed = openHeed({ agent: first }, place.store())
    await first.generate('To Rome?', ask)
    await soon(() => never.calls.length).toBe(1)
    await heed.close()
    const second = clerk(writes())
    const next = openHeed({ agent: second }, place.store())
    await next.start()
    await soon(() => titleIn(second)).toBe('Going to Rome.')
  })

  it('[M3.6] have the options of their call, also those that wait and those that are tried again', async () => {
    let failures = 3
    const own = writes(() => {
      if (failures-- > 0) throw new Error('no titles today')
      return 'Roma'
    })
    const model = scriptedModel(() => 'By train.')
    const agent = new Agent({ id: 'plain', model, memory: new Memory() })
    const clock = virtualClock()
    const heed = openHeed({ agent }, make({ clock }).store(), { clock })
    const ids = Array.from({ length: 20 }, (_, index) => `many-${index}`)
    const generateTitle = { model: [{ model: own, maxRetries: 0 }], instructions: 'One word.' }
    await Promise.all(ids.map((id) => agent.generate('To Rome?', { memory: { thread: id, resource: 'user-7', options: { generateTitle } } })))
    await soon(async () => {
      await clock.advance(30_000)
      await heed.tick()
      return (await Promise.all(ids.map((id) => titleIn(agent, id)))).every((title) => title === 'Roma')
    }).toBe(true)
    expect(model.calls).toHaveLength(20)
  })

  it('[M3.4] of many threads at once are all made, a few at a time', async () => {
    let now = 0
    let most = 0
    const writer = scriptedModel(async () => {
      most = Math.max(most, ++now)
      await new Promise((resolve) => setImmediate(resolve))
      now--
      return 'Rome'
    })
    const agent = clerk(writer)
    openHeed({ agent }, make().store())
    const ids = Array.from({ length: 40 }, (_, index) => `many-${index}`)
    await Promise.all(ids.map((id) => agent.generate('To Rome?', { memory: { thread: id, resource: 'user-7' } })))
    await soon(async () => (await Promise.all(ids.map((id) => titleIn(agent, id)))).every((title) => title === 'Rome')).toBe(true)
    expect(writer.calls).toHaveLength(40)
    expect(most).toBeLessThanOrEqual(8)
  })
})

describe('a process that is killed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-titles-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('[M3.4] while it makes a title leaves the mark, and the next process makes the title', async () => {
    const url = `file:${join(folder, 'killed.db')}`
    const module = (name: string) => JSON.stringify(new URL(`../../src/${name}`, import.meta.url).href)
    const text = `
      import { Agent, Heed, Memory } from ${module('index.ts')}
      import { LibSQLStore } from ${module('store/sqlite/index.ts')}
      import { scriptedModel } from ${module('testing/index.ts')}
      const writer = scriptedModel(() => { process.send('writing'); return new Promise(() => {}) })
      const agent = new Agent({ id: 'clerk', model: scriptedModel(['By train.']), memory: new Memory({ generateTitle: { model: writer } }) })
      const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: ${JSON.stringify(url)} }) })
      await agent.generate('To Rome?', { memory: ${JSON.stringify(where)} })
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const exited = once(child, 'exit')
    const [said] = (await Promise.race([once(child, 'message'), exited])) as unknown[]
    child.kill('SIGKILL')
    await exited
    expect(said).toBe('writing')

    const clock = { ...systemClock, now: () => Date.now() + 61_000 }
    const agent = clerk(writes())
    const heed = openHeed({ agent }, new LibSQLStore({ url, clock }), { clock })
    await heed.start()
    await soon(() => titleIn(agent)).toBe('Going to Rome.')
    const { messages } = await (await agent.getMemory()).recall({ threadId })
    expect(messages).toHaveLength(2)
  })
})

describe('what a model writes', () => {
  it.each([
    ['"Going to Rome"', 'Going to Rome'],
    ['\n\n# Going   to Rome\nMore.', 'Going to Rome'],
    ['**Rome**', 'Rome'],
    ['   ', ''],
    ['"A **Title**"', 'A Title'],
    ['**"A Title"**', 'A Title'],
    ['# Title', 'Title'],
    ['## "Going *slowly* to Rome" ##', 'Going slowly to Rome'],
    ['Title: Going to Rome', 'Going to Rome'],
    ['**Title:** Going to Rome', 'Going to Rome'],
    ['Titel: „Nach Rom“', 'Nach Rom'],
    ['Title:\n\nGoing to Rome', 'Going to Rome'],
    ['```\nGoing to Rome\n```', 'Going to Rome'],
    ['<title>Going to Rome</title>', 'Going to Rome'],
    ['- Going to Rome', 'Going to Rome'],
    ['“Going to Rome”', 'Going to Rome'],
    ["'It's far'", "It's far"],
    ['`npm` and `yarn`', '`npm` and `yarn`'],
    ['"The Matrix" explained', '"The Matrix" explained'],
    ['"A" or "B"', '"A" or "B"'],
    ["'90s music", "'90s music"],
    ['snake_case and other_names', 'snake_case and other_names'],
    ['2 * 3 * 4', '2 * 3 * 4'],
    ['C# and F#', 'C# and F#'],
    ['***', ''],
    ['Rome: a title', 'Rome: a title'],
    ['x'.repeat(150), `${'x'.repeat(99)}…`],
  ])('%j becomes %j', (written, title) => expect(cleanTitle(written)).toBe(title))

  it.each([
    ['yes', 'invalid_argument', 'generateTitle'],
    [{ instructions: '' }, 'invalid_argument', 'generateTitle.instructions'],
    [{ minutes: 3 }, 'unsupported_option', 'generateTitle.minutes'],
  ])('[M3.5] generateTitle: %j is rejected by name', async (given, code, option) => {
    const generateTitle = given as never
    expect(thrownBy(() => new Memory({ generateTitle }))).toMatchObject({ code, details: { option } })
    const agent = new Agent({ id: 'a', model: writes(), memory: new Memory() })
    expect(await rejection(agent.generate('x', { memory: { ...where, options: { generateTitle } } }))).toMatchObject({ code, details: { option } })
  })
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import type { Agent, Message } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { virtualClock } from '../../src/testing/index.ts'
import { killed, runChild, said } from '../lanes/child.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { collect, soon, types } from '../thread/said.ts'
import { approving, below, guarded, places, startOf, thread, type Place } from './guarded.ts'

const text = ({ content }: Message) => content.parts.map((part) => (part.type === 'text' ? part.text : part.type === 'tool-invocation' ? `[${part.toolInvocation.toolName}]` : '')).join('')

async function history(agent: Agent): Promise<Message[]> {
  return (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages
}

/** What was there before and what waited are there and answered; of the refused run only what stood before the refused input. */
async function expectNothingOf(place: Place, agent: Agent): Promise<void> {
  await soon(async () => (await agent.explain({ ...thread, signalId: 'then' }))?.state).toBe('consumed')
  await soon(() => agent.activeRun(thread)).toBeNull()
  const messages = await history(agent)
  const told = messages.filter(({ type }) => type !== 'state').map(text)
  const sealed = place === 'mid-run input' ? ['Go.', 'Looking.[look][updateWorkingMemory]'] : []
  expect(told).toEqual(['Before.', 'Fine.', ...sealed, 'Then.', 'Fine.'])
  expect(JSON.stringify(messages)).not.toContain('FORBIDDEN')
  const states = messages.filter(({ type }) => type === 'state').map(({ id }) => id)
  const { signals } = await agent.listLaneHistory({ ...thread, id: 'steps' })
  expect(signals.map(({ signal }) => signal.id).toReversed()).toEqual(states)
  expect(states).toHaveLength(place === 'mid-run input' ? 3 : 2)
  expect((await agent.getLane({ ...thread, id: 'steps' }))?.lastSignalId).toBe(states.at(-1))
  expect(await agent.explain({ ...thread, signalId: place === 'mid-run input' ? 'mid' : 'first' })).toMatchObject({ state: 'rejected' })
  expect(await agent.explain({ ...thread, signalId: 'then' })).toMatchObject({ state: 'consumed' })
  const memory = await agent.getMemory()
  // What stood before the refused input was sealed, with what it kept in mind.
  expect(await memory.getWorkingMemory(thread)).toBe(place === 'mid-run input' ? '# Kept in mind' : null)
  const { messages: found } = await memory.recall({ ...thread, vectorSearchString: 'What is FORBIDDEN? Looking at the start, in the middle, go.' })
  expect(JSON.stringify(found)).not.toContain('FORBIDDEN')
  expect(await memory.getThreadById({ threadId: below.threadId })).toBeNull()
}

/** The index of a database has passages of messages that are there, and of no others. */
function expectIndexOf(path: string): void {
  const index = new DatabaseSync(`${path}-recall`, { readOnly: true, timeout: 60_000 })
  const messages = new DatabaseSync(path, { readOnly: true, timeout: 60_000 })
  try {
    const there = new Set(messages.prepare("SELECT key FROM heed_messages WHERE role <> 'context'").all().map(({ key }) => Number(key)))
    const indexed = index.prepare('SELECT DISTINCT key / 1024 AS message FROM passages').all().map(({ message }) => Number(message))
    expect(indexed.length).toBeGreaterThan(0)
    expect(indexed.filter((message) => !there.has(message))).toEqual([])
    expect(index.prepare("SELECT count(*) AS found FROM words WHERE rowid / 1024 NOT IN (SELECT key / 1024 FROM passages)").get()).toEqual({ found: 0 })
  } finally {
    index.close()
    messages.close()
  }
}

describe.each(placeKinds())('a refusal, $name', ({ make }) => {
  it.each(places)('[R7.2] of %s leaves nothing of what it refuses in history, lanes, recall or working memory, however many steps were stored; what waited is answered', async (place) => {
    const { agent, agents, model } = guarded(place)
    openHeed(agents, make().store())
    void approving(agent)
    const seen = collect(await agent.subscribeToThread(thread))
    await agent.generate('Before.', { memory: { thread: 't', resource: 'u' } })
    agent.queueMessage({ id: 'first', contents: startOf(place) }, thread)
    agent.queueMessage({ id: 'then', contents: 'Then.' }, thread)
    await expectNothingOf(place, agent)
    expect(types(seen.chunks).filter((type) => type === 'tripwire')).toHaveLength(1)
    expect(types(seen.chunks).filter((type) => type === 'tool-call-approval')).toHaveLength(place === 'output result after an approval' ? 1 : 0)
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('FORBIDDEN')
  })
})

describe('a process that is killed while it refuses', () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-refusals-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  const moments = ['before the refusal is stored', 'right after it is stored'] as const
  // Each place with one of the moments, in turn; `npm run test:refusals` tests each place with both.
  const every = process.env.HEED_REFUSALS === 'all'
  const cases = places.flatMap((place, index) =>
    moments.filter((_, moment) => every || moment === index % moments.length).map((moment) => ({ place, moment })))

  it.each(cases)('[R7.3] of $place, $moment, leaves nothing of it in history, lanes, working memory or the index of recall either', async ({ place, moment }) => {
    const url = `file:${join(folder, `${place}-${moments.indexOf(moment)}.db`.replaceAll(' ', '-'))}`
    const child = runChild(`
      const { approving, guarded, startOf, thread } = await import(${JSON.stringify(new URL('./guarded.ts', import.meta.url).href)})
      const die = () => process.kill(process.pid, 'SIGKILL')
      const early = ${JSON.stringify(moment === moments[0])}
      const refusing = async () => { if (early) { await waiting; process.send('refusing', die); await new Promise(() => {}) } }
      const { agent, agents } = guarded(${JSON.stringify(place)}, refusing)
      new Heed({ agents, storage: new LibSQLStore({ url: ${JSON.stringify(url)} }), logger: silentLogger })
      await agent.generate('Before.', { memory: { thread: 't', resource: 'u' } })
      const { stream } = await agent.subscribeToThread(thread)
      void approving(agent)
      agent.queueMessage({ id: 'first', contents: startOf(${JSON.stringify(place)}) }, thread)
      var waiting = agent.queueMessage({ id: 'then', contents: 'Then.' }, thread).stored
      for await (const chunk of stream) if (chunk.type === 'tripwire') { process.send('refused', die); await new Promise(() => {}) }`)
    expect(await said(child)).toBe(moment === moments[0] ? 'refusing' : 'refused')
    await killed(child)

    // As much later as it takes until the dead process counts as gone.
    const clock = virtualClock(Date.now() + 60_000)
    const { agent, agents } = guarded(place)
    const heed = openHeed(agents, new LibSQLStore({ url, clock }), { clock })
    await heed.start()
    await expectNothingOf(place, agent)
    expectIndexOf(url.slice('file:'.length))
  })
})

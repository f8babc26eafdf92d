import { DatabaseSync } from 'node:sqlite'
import { expect } from 'vitest'
import type { Agent, Message } from '../../src/index.ts'
import { soon } from '../thread/said.ts'
import { below, thread, type Place } from './guarded.ts'

const text = ({ content }: Message) => content.parts.map((part) => (part.type === 'text' ? part.text : part.type === 'tool-invocation' ? `[${part.toolInvocation.toolName}]` : '')).join('')

async function history(agent: Agent): Promise<Message[]> {
  return (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages
}

/** What was there before and what waited are there and answered; of the refused run only what stood before the refused input. */
export async function expectNothingOf(place: Place, agent: Agent): Promise<void> {
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
export function expectIndexOf(path: string): void {
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

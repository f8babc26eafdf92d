import { describe, expect, it } from 'vitest'
import { Agent, Memory, type Logger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { kept } from '../memory/kept.ts'
import { newFile } from '../new-file.ts'
import { openHeed, placeKinds } from './places.ts'
import { gate, soon } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

function journal() {
  const lines: string[] = []
  const log = (level: string) => (message: string) => void lines.push(`${level}: ${message}`)
  const logger: Logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  return { lines, logger }
}

describe.each(placeKinds())('a storage that is closed before its Heed, $name', ({ make }) => {
  it('[M4.6] is not used any more: no timer is left, and no failure is logged', async () => {
    const clock = virtualClock()
    const { lines, logger } = journal()
    const storage = make({ clock }).store()
    const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Yes.') })
    openHeed({ agent }, storage, { clock, logger })
    await agent.generate('Hello.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    await agent.schedule({ ...thread, id: 's', message: 'Tick.', every: 3_600_000 })
    await agent.sendNotificationSignal({ source: 's', kind: 'k', summary: 'x', priority: 'low' }, thread)
    expect(clock.pending).toBeGreaterThan(0)
    await storage.close()
    await soon(async () => {
      await clock.advance(1_000)
      return clock.pending
    }).toBe(0)
    await clock.advance(10 * 3_600_000)
    expect(clock.pending).toBe(0)
    expect(lines).toEqual([])
    await expect(agent.generate('Hello.', { memory: { thread: thread.threadId, resource: thread.resourceId } })).rejects.toMatchObject({ code: 'closed' })
  })
})

describe('a storage that is opened again', () => {
  it('[M4.6] continues the run that was cut, and its answer is stored once', async () => {
    const clock = virtualClock()
    const url = `file:${newFile()}`
    const { lines, logger } = journal()
    const hold = gate()
    const model = scriptedModel(({ index }) => (index === 0 ? { text: 'Well,', gate: hold.promise } : 'Yes.'))
    const storage = new LibSQLStore({ url, clock })
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, storage, { clock, logger })
    agent.sendMessage('Hello.', thread)
    await soon(() => model.callCount).toBe(1)
    await storage.close()
    await soon(async () => {
      await clock.advance(1_000)
      return lines.filter((line) => line.startsWith('warn: the storage was closed while threads ran on it'))
    }).toHaveLength(1)
    hold.open()
    await soon(() => clock.pending).toBe(0)
    const next = new Agent({ id: 'a', model })
    openHeed({ next }, new LibSQLStore({ url, clock }), { clock })
    await soon(async () => {
      await clock.advance(10_000)
      return (await (await next.getMemory()).recall({ threadId: thread.threadId })).messages.map(({ role }) => role)
    }).toEqual(['signal', 'assistant'])
    expect(lines.filter((line) => line.includes('orphaned') || line.includes('heartbeat'))).toEqual([])
  })

  it('[M4.6] works for agents without a Heed as the first storage did, in the same process', async () => {
    const url = `file:${newFile()}`
    const ask = async (storage: LibSQLStore) => {
      const agent = new Agent({ id: 'a', model: scriptedModel(() => 'Yes.'), memory: new Memory({ storage }) })
      await agent.generate('Hello.', { memory: { thread: 't', resource: 'u' } })
      return (await (await agent.getMemory()).recall({ threadId: 't' })).messages.length
    }
    const first = new LibSQLStore({ url })
    expect(await ask(first)).toBe(2)
    await first.close()
    const second = kept(new LibSQLStore({ url }))
    await soon(() => ask(second).catch((error: unknown) => String(error))).toBe(4)
  })
})

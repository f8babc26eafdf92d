import { describe, expect, it } from 'vitest'
import type { Chunk, ThreadSnapshot } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { newFile } from '../new-file.ts'
import { isType, joinedLog, soon } from '../thread/said.ts'
import { member, sweepingMember, type Member } from './cluster.ts'

const threadId = 'thread-1'
const thread = { resourceId: 'user-1', threadId }

const log = async (of: Member, key = 'log'): Promise<Chunk[]> => (await of.ask('log', key)) ?? []
const saw = (of: Member, text: string, key = 'log') => soon(async () => JSON.stringify(await log(of, key)).includes(text)).toBe(true)
const snapshotsIn = (chunks: readonly Chunk[]): ThreadSnapshot[] =>
  chunks.flatMap((chunk) => (chunk.type === 'data-thread-snapshot' ? [(chunk as { data: ThreadSnapshot }).data] : []))

async function three(kind = member): Promise<{ file: string; a: Member; b: Member; c: Member; all: Member[] }> {
  const file = newFile()
  const [a, b, c] = await Promise.all([kind(file), kind(file), kind(file)])
  return { file, a, b, c, all: [a, b, c] }
}

/** The thread hangs in the first process, and all three watch it. */
async function hanging({ a, all }: { a: Member; all: Member[] }): Promise<string> {
  await Promise.all(all.map((each) => each.ask('subscribe', 'log', thread)))
  await a.ask('send', 'former hang', thread)
  for (const each of all) await saw(each, '"on"')
  const { cursor = '' } = (await log(a)).at(-1) ?? {}
  return cursor
}

/** What each has seen since its last snapshot. */
const since = (chunks: readonly Chunk[]): Chunk[] => chunks.slice(chunks.findLastIndex(isType('data-thread-snapshot')) + 1)

describe('a thread that one of three processes deletes while it runs in another', () => {
  it('[R11.2] [W1.3] ends there, and all watchers see the next thread with the same cursors and nothing of the former', async () => {
    const { a, b, c, all } = await three()
    const cursor = await hanging({ a, all })
    expect(await c.ask('delete', threadId)).toBe(true)
    for (const each of all) await soon(async () => snapshotsIn(await log(each))).toMatchObject([{ reason: 'replaced', messages: [] }])
    await soon(async () => a.ask('runsHere', threadId)).toBe(false)

    const { id } = await b.ask('send', 'later say 4', thread)
    expect(await b.ask('outcome', id)).toMatchObject({ action: 'woke' })
    for (const each of all) await saw(each, '"finish"')
    const logs = await Promise.all(all.map(async (each) => since(await log(each))))
    expect(joinedLog(logs[1] ?? [])).toEqual(joinedLog(logs[0] ?? []))
    expect(joinedLog(logs[2] ?? [])).toEqual(joinedLog(logs[0] ?? []))
    expect(logs[1]?.map(({ cursor: at }) => at)).toEqual(logs[2]?.map(({ cursor: at }) => at))
    for (const chunks of logs) expect(chunks.filter(isType('start', 'finish', 'abort'))).toHaveLength(2)

    // A cursor of the former thread gives a snapshot in every process, and no word of it.
    for (const each of all) {
      await each.ask('subscribe', 'old', { ...thread, after: cursor })
      await saw(each, 'data-thread-snapshot', 'old')
      expect(JSON.stringify(await log(each, 'old'))).not.toContain('former')
    }
    expect(JSON.stringify(await a.ask('recall', threadId))).not.toContain('former')
  })

  it('[R11.2] [R11.3] sends of another process to it are discarded, and its runner ends although no message came', async () => {
    const { file, a, b, all } = await three((file) => sweepingMember(file))
    await hanging({ a, all })
    const { id } = await b.ask('send', 'steer', thread)
    // A program without a Heed has no bus: the sweeps of the processes find it.
    const program = new LibSQLStore({ url: `file:${file}` })
    await program.deleteThread(thread)
    await program.close()
    expect(await b.ask('outcome', id)).toEqual({ action: 'discarded', reason: 'deleted' })
    await expect.poll(async () => a.ask('runsHere', threadId)).toBe(false)
    for (const each of all) await expect.poll(async () => snapshotsIn(await log(each)).at(-1)?.messages).toEqual([])
  })

  it('[W2.2] [R11.2] the next thread has the same chunks everywhere, also where the former run had no message of its end', async () => {
    const { file, a, b, all } = await three()
    await Promise.all(all.map((each) => each.ask('subscribe', 'log', thread)))
    await a.ask('send', 'former tool late', thread)
    for (const each of all) await saw(each, '"tool-call"')
    const program = new LibSQLStore({ url: `file:${file}` })
    await program.deleteThread(thread)
    await program.close()
    await b.ask('send', 'later say 8 middle', thread)
    // The former run ends here, in the middle of the next thread's.
    for (const each of all) await saw(each, 'later-0')
    await b.ask('open', 'middle')
    for (const each of all) await saw(each, '"finish"')
    const logs = await Promise.all(all.map(async (each) => since(await log(each))))
    expect(joinedLog(logs[0] ?? [])).toEqual(joinedLog(logs[1] ?? []))
    expect(joinedLog(logs[2] ?? [])).toEqual(joinedLog(logs[1] ?? []))
  })

  it('[W1.3] a subscriber of a third process receives no word of it from a process that still runs it without a message of its end', async () => {
    const { file, a, b, c } = await three()
    await a.ask('send', 'former hang', thread)
    await soon(async () => (await a.ask('calls')).length).toBe(1)
    const program = new LibSQLStore({ url: `file:${file}` })
    await program.deleteThread(thread)
    await program.close()
    await b.ask('send', 'later say 4 middle', thread)
    await soon(async () => (await b.ask('calls')).length).toBe(1)
    // The process that runs the thread now answers later than the one that runs the former.
    b.child.kill('SIGSTOP')
    await c.ask('subscribe', 'log', thread)
    b.child.kill('SIGCONT')
    await b.ask('open', 'middle')
    await saw(c, 'later-3')
    await saw(c, '"finish"')
    expect(JSON.stringify(await log(c))).not.toMatch(/former|"On|"and/)
  })

  it('[W1.3] the reason of the snapshot is `replaced` in every process, also where no message said that the thread was deleted', async () => {
    const { file, a, b, c, all } = await three()
    await Promise.all(all.map((each) => each.ask('subscribe', 'log', thread)))
    await a.ask('send', 'former say 2', thread)
    for (const each of all) await saw(each, '"finish"')
    const { cursor = '' } = (await log(a)).at(-1) ?? {}
    const program = new LibSQLStore({ url: `file:${file}` })
    await program.deleteThread(thread)
    await program.close()
    await b.ask('send', 'later say 4', thread)
    for (const each of all) {
      await saw(each, 'later-3')
      expect(snapshotsIn(await log(each)).map(({ reason }) => reason)).toEqual(['replaced'])
    }
    await c.ask('subscribe', 'old', { ...thread, after: cursor })
    await soon(async () => snapshotsIn(await log(c, 'old'))).toMatchObject([{ reason: 'replaced' }])
  })

  it('[R11.2] [W1.3] the same when a backup is restored: the run ends, and all see what was restored', async () => {
    const { a, b, c, all } = await three()
    await b.ask('send', 'kept say 2', thread)
    await soon(async () => b.ask('activeRun', thread)).toBeNull()
    const backup = newFile()
    await b.ask('backup', backup)
    await hanging({ a, all })
    await c.ask('restore', backup)
    for (const each of all) {
      await soon(async () => snapshotsIn(await log(each)).at(-1)?.reason).toBe('replaced')
      expect(JSON.stringify(snapshotsIn(await log(each)).at(-1))).toContain('kept-1')
      expect(JSON.stringify(snapshotsIn(await log(each)).at(-1))).not.toContain('former')
    }
    await soon(async () => a.ask('runsHere', threadId)).toBe(false)
    const { id } = await b.ask('send', 'later say 4', thread)
    expect(await b.ask('outcome', id)).toMatchObject({ action: 'woke' })
    for (const each of all) await saw(each, 'later-3')
    await Promise.all(all.map((each) => each.ask('close')))
  })
})

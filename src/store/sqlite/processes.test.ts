import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { acceptOne, persisted, scope, send, states, threadId, windows } from '../conformance/fixture.ts'
import { LibSQLStore } from './store.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-processes-'))
let count = 0
const newFile = () => join(folder, `${count++}.db`)

const children: ChildProcess[] = []
const opened: LibSQLStore[] = []
afterEach(async () => {
  await Promise.all(children.splice(0).map(end))
  await Promise.all(opened.splice(0).map((store) => store.close()))
})
afterAll(() => rmSync(folder, { recursive: true }))

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'exit')
}

function storeAt(path: string, busyTimeout?: number): LibSQLStore {
  const store = new LibSQLStore({ url: `file:${path}`, busyTimeout })
  opened.push(store)
  return store
}

/** Another process that runs this module text; it has `store`, `send`, `path`, and `heard`, the next message from here. */
function another(path: string, code: string): ChildProcess {
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
  const text = `
    import { DatabaseSync } from 'node:sqlite'
    import { once } from 'node:events'
    import { send, persisted, acceptOne, start, commit, row } from ${module('../conformance/fixture.ts')}
    import { LibSQLStore } from ${module('./store.ts')}
    const path = ${JSON.stringify(path)}
    const heard = () => once(process, 'message')
    ${code}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  children.push(child)
  return child
}

async function said(child: ChildProcess): Promise<unknown> {
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`the other process ended with ${String(code)}`)
    }),
  ])
  return message
}

describe('another process', () => {
  it('[A1.2] that is killed right after a flush leaves everything it flushed', async () => {
    const path = newFile()
    const child = another(path, `
      const store = new LibSQLStore({ url: 'file:' + path })
      const run = await start(store, 'first')
      await commit(store, run, { rows: [row('said', 'assistant')], started: ['call-1'] })
      await Promise.all(Array.from({ length: 200 }, (_, index) => acceptOne(store, send('s' + index))))
      await store.flush()
      process.send('flushed')
      await heard()`)
    expect(await said(child)).toBe('flushed')
    await end(child)

    const store = storeAt(path)
    expect(Object.values(await states(store))).toEqual(['taken', ...Array.from({ length: 200 }, () => 'pending')])
    await store.resign('p1')
    const claimed = await store.claim(threadId, 'p2')
    const begun = claimed && (await store.beginRun(claimed.fence, windows({ low: 10, high: 20 })))
    expect(begun).toMatchObject({ resumed: true, run: { runId: 'run-of-first', started: ['call-1'], attempts: 2 } })
    expect(begun?.rows.map(({ id }) => id)).toEqual(['first', 'said'])
  })

  it('that holds the file makes writes wait, and nothing else', async () => {
    const path = newFile()
    const store = storeAt(path)
    await acceptOne(store, send('before', persisted))
    const child = another(path, `
      const database = new DatabaseSync(path, { timeout: 60_000 })
      database.exec('BEGIN IMMEDIATE')
      process.send('holding')
      await heard()
      process.send('still holding')
      await heard()
      database.exec('COMMIT')
      database.close()
      process.disconnect()`)
    expect(await said(child)).toBe('holding')

    let written = false
    const write = acceptOne(store, send('after', persisted)).finally(() => {
      written = true
    })
    // A whole exchange with the other process: the event loop is free, reads are answered, the write still waits.
    child.send('ping')
    expect(await said(child)).toBe('still holding')
    expect((await store.listRows(scope, { limit: 10 })).rows.map(({ id }) => id)).toEqual(['before'])
    expect(written).toBe(false)
    child.send('let go')
    expect(await write).toMatchObject({ route: 'persist', duplicate: false })
  })

  it('that never lets go makes writes fail after their time, and they may be tried again', async () => {
    const path = newFile()
    const store = storeAt(path, 50)
    await store.open()
    const child = another(path, `
      const database = new DatabaseSync(path, { timeout: 60_000 })
      database.exec('BEGIN IMMEDIATE')
      process.send('holding')
      await heard()
      database.exec('COMMIT')
      database.close()
      process.disconnect()`)
    expect(await said(child)).toBe('holding')
    await expect(store.accept([send('a', persisted)])).rejects.toMatchObject({ code: 'store_failed', retryable: true })
    child.send('let go')
    await once(child, 'exit')
    expect(await acceptOne(store, send('a', persisted))).toMatchObject({ duplicate: false })
  })

  it('[R1.2] [A2.1] that writes at the same time: each thread has one owner, each signal is there once', async () => {
    const path = newFile()
    const store = storeAt(path)
    await store.open()
    const threads = 60
    const child = another(path, `
      const store = new LibSQLStore({ url: 'file:' + path })
      await store.open()
      process.send('ready')
      await heard()
      const answers = await Promise.all(Array.from({ length: ${threads} }, async (_, index) => {
        await new Promise((resolve) => setImmediate(resolve))
        return acceptOne(store, send('same', { threadId: 'both-' + index, claim: { owner: 'theirs' }, runId: 'run' }))
      }))
      await store.close()
      process.send(answers.map((answer) => ({ duplicate: answer.duplicate, epoch: answer.fence?.epoch ?? null })))
      process.disconnect()`)
    expect(await said(child)).toBe('ready')
    const theirs = said(child) as Promise<Array<{ duplicate: boolean; epoch: number | null }>>
    child.send('go')
    const mine: Array<{ duplicate: boolean; epoch: number | null }> = []
    for (let index = threads - 1; index >= 0; index -= 1) {
      const answer = await acceptOne(store, send('same', { threadId: `both-${index}`, claim: { owner: 'mine' }, runId: 'run' }))
      mine[index] = { duplicate: answer.duplicate, epoch: answer.fence?.epoch ?? null }
    }
    const other = await theirs
    for (let index = 0; index < threads; index += 1) {
      expect([mine[index]?.duplicate, other[index]?.duplicate].toSorted()).toEqual([false, true])
      expect([mine[index]?.epoch, other[index]?.epoch].filter((epoch) => epoch !== null)).toEqual([1])
    }
  })

  it('[M2.2] that merges into the same working memory: every field of both is kept', async () => {
    const path = newFile()
    const store = storeAt(path)
    await store.open()
    const of = { scope: 'resource', resourceId: 'both' } as const
    const child = another(path, `
      const store = new LibSQLStore({ url: 'file:' + path })
      await store.open()
      process.send('ready')
      await heard()
      const of = { scope: 'resource', resourceId: 'both' }
      for (let index = 0; index < 60; index++) await store.mergeWorkingMemory(of, { merge: { shared: index, theirs: { ['f' + index]: index } } })
      await store.close()
      process.send('done')
      process.disconnect()`)
    expect(await said(child)).toBe('ready')
    const done = said(child)
    child.send('go')
    for (let index = 0; index < 60; index++) await store.mergeWorkingMemory(of, { merge: { shared: -index, mine: { [`f${index}`]: index } } })
    expect(await done).toBe('done')
    const { value, version } = (await store.getWorkingMemory(of)) ?? {}
    const kept = value as { mine: object; theirs: object }
    expect([Object.keys(kept.mine).length, Object.keys(kept.theirs).length, version]).toEqual([60, 60, 120])
  })
})

import files from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { newFile } from '../../../test/new-file.ts'
import { HeedError } from '../../base/errors.ts'
import { FileCheck, Flusher, LogFile, NotSynced } from './flush.ts'
import { LibSQLStore } from './store.ts'

/** A disk whose syncs end when told. */
class Disk {
  readonly syncs: Array<PromiseWithResolvers<void>> = []

  sync = (): Promise<void> => {
    const sync = Promise.withResolvers<void>()
    this.syncs.push(sync)
    return sync.promise
  }
}

async function isDone(promise: Promise<void>): Promise<boolean> {
  const pending = Symbol('pending')
  await new Promise((resolve) => setImmediate(resolve))
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending
}

describe('[A1.1] flushing', () => {
  it('shares one sync among those who ask for it together, and asks for none when nothing is new', async () => {
    const disk = new Disk()
    const flusher = new Flusher(disk.sync)
    await flusher.flush()
    expect(disk.syncs).toHaveLength(0)
    flusher.committed()
    const all = [flusher.flush(), flusher.flush(), flusher.flush()]
    expect(disk.syncs).toHaveLength(1)
    expect(await isDone(Promise.race(all))).toBe(false)
    disk.syncs[0]?.resolve()
    await Promise.all(all)
    await flusher.flush()
    expect(disk.syncs).toHaveLength(1)
  })

  it('never takes a sync that began before a commit as its own, and has two under way at most', async () => {
    const disk = new Disk()
    const flusher = new Flusher(disk.sync)
    const flushed = Array.from({ length: 4 }, () => {
      flusher.committed()
      return flusher.flush()
    })
    expect(disk.syncs).toHaveLength(2)
    disk.syncs[0]?.resolve()
    await flushed[0]
    expect(await isDone(flushed[1] as Promise<void>)).toBe(false)
    expect(disk.syncs).toHaveLength(3)
    disk.syncs[1]?.resolve()
    await flushed[1]
    expect(await isDone(Promise.race(flushed.slice(2)))).toBe(false)
    disk.syncs[2]?.resolve()
    await Promise.all(flushed)
    await flusher.flush()
    expect(disk.syncs).toHaveLength(3)
  })

  it('takes none for done before those that began earlier are', async () => {
    const disk = new Disk()
    const flusher = new Flusher(disk.sync)
    flusher.committed()
    const first = flusher.flush()
    flusher.committed()
    const second = flusher.flush()
    disk.syncs[1]?.resolve()
    expect(await isDone(Promise.race([first, second]))).toBe(false)
    disk.syncs[0]?.resolve()
    await Promise.all([first, second])
    await flusher.settled()
  })

  it.each([[[0]], [[1, 0]], [[0, 1]]])('after one failure promises nothing any more, whichever ends first (%j)', async (ends) => {
    const disk = new Disk()
    const flusher = new Flusher(disk.sync)
    const flushed = Array.from({ length: 3 }, () => {
      flusher.committed()
      return flusher.flush()
    })
    // The disk tells one of them only.
    for (const end of ends) {
      if (end === 0) disk.syncs[0]?.reject(new Error('EIO'))
      else disk.syncs[1]?.resolve()
    }
    for (const promised of flushed) await expect(promised).rejects.toMatchObject({ code: 'store_failed' })
    await expect(flusher.flush()).rejects.toMatchObject({ code: 'store_failed' })
    expect(disk.syncs).toHaveLength(2)
    await flusher.settled()
  })

  it('[A1.6] tries again after a file could not be opened', async () => {
    const disk = new Disk()
    const flusher = new Flusher(disk.sync)
    const flushed = Array.from({ length: 3 }, () => {
      flusher.committed()
      return flusher.flush()
    })
    disk.syncs[1]?.resolve()
    disk.syncs[0]?.reject(new NotSynced(new HeedError('store_failed', 'EMFILE', { retryable: true })))
    for (const promised of flushed.slice(0, 2)) await expect(promised).rejects.toMatchObject({ code: 'store_failed', retryable: true })
    for (const sync of disk.syncs.slice(2)) sync.resolve()
    await flushed[2]
    await flusher.flush()
    expect(disk.syncs).toHaveLength(3)
    await flusher.settled()
  })

  it('[A1.6] syncs the log that was opened with the database, when the process can open no file any more', async () => {
    const path = newFile()
    const store = new LibSQLStore({ url: `file:${path}` })
    await store.open()
    const database = new DatabaseSync(path)
    const log = await LogFile.open(path, new FileCheck(database, path))
    const { open } = files
    onTestFinished(async () => {
      database.close()
      await log.close()
      await store.close()
    })
    try {
      Object.assign(files, { open: () => Promise.reject(Object.assign(new Error('too many open files'), { code: 'EMFILE' })) })
      syncBuiltinESMExports()
      await expect(LogFile.open(path, new FileCheck(database, path))).rejects.toMatchObject({ code: 'store_failed', retryable: true })
      const flusher = new Flusher(() => log.sync())
      flusher.committed()
      await flusher.flush()
    } finally {
      Object.assign(files, { open })
      syncBuiltinESMExports()
    }
  })
})

import { describe, expect, it } from 'vitest'
import { Flusher } from './flush.ts'

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

  it('never takes a sync that began before a commit as its own', async () => {
    const disk = new Disk()
    const flusher = new Flusher(disk.sync)
    flusher.committed()
    const first = flusher.flush()
    flusher.committed()
    const second = flusher.flush()
    flusher.committed()
    const third = flusher.flush()
    expect(disk.syncs).toHaveLength(1)
    disk.syncs[0]?.resolve()
    await first
    expect(await isDone(second)).toBe(false)
    expect(disk.syncs).toHaveLength(2)
    disk.syncs[1]?.resolve()
    await Promise.all([second, third])
    expect(disk.syncs).toHaveLength(2)
  })

  it('after one failure promises nothing any more', async () => {
    const disk = new Disk()
    const flusher = new Flusher(disk.sync)
    flusher.committed()
    const first = flusher.flush()
    flusher.committed()
    const second = flusher.flush()
    disk.syncs[0]?.reject(new Error('EIO'))
    await expect(first).rejects.toMatchObject({ code: 'store_failed' })
    await expect(second).rejects.toMatchObject({ code: 'store_failed' })
    await expect(flusher.flush()).rejects.toMatchObject({ code: 'store_failed' })
    expect(disk.syncs).toHaveLength(1)
    await flusher.settled()
  })
})

import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, copyFileSync, mkdirSync, mkdtempSync, openSync, renameSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Chance } from '../../../src/store/conformance/fixture.ts'
import { LibSQLStore } from '../../../src/store/sqlite/store.ts'
import type { SenderPlan, SenderReport } from './sender.ts'

const work = mkdtempSync(join(tmpdir(), 'heed-faults-'))
let count = 0
const undo: Array<() => void> = []
afterEach(() => {
  for (const step of undo.splice(0).toReversed()) step()
})
afterAll(() => rmSync(work, { recursive: true, force: true }))

const isRoot = process.getuid?.() === 0

function newFolder(): string {
  const folder = join(work, `${count++}`)
  mkdirSync(folder)
  return folder
}

/** A small disk of its own; undefined where none can be mounted. */
function smallDisk(size: string): string | undefined {
  const folder = newFolder()
  if (!isRoot) return undefined
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  undo.push(() => execFileSync('umount', ['-l', folder]))
  return folder
}

/** A process that opens one database after the other. */
class Sender {
  readonly #child: ChildProcess
  readonly #gone: Promise<unknown[]>
  readonly #ended: Promise<never>

  constructor(before = '') {
    const command = [process.execPath, '--no-warnings', join(import.meta.dirname, 'sender.ts')]
    this.#child = spawn('sh', ['-c', `${before}exec "$0" "$@"`, ...command], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#gone = once(this.#child, 'exit')
    this.#ended = this.#gone.then(([code, signal]) => {
      throw new Error(`it ended without a word: ${String(code ?? signal)}`)
    })
    this.#ended.catch(() => {})
  }

  async #said(): Promise<unknown> {
    return (await Promise.race([once(this.#child, 'message'), this.#ended]))[0] as unknown
  }

  async perform(plan: SenderPlan, worst: () => void, better: () => void): Promise<SenderReport> {
    this.#child.send(plan)
    expect(await this.#said()).toBe('ready')
    worst()
    this.#child.send('go')
    expect(await this.#said()).toBe('sent')
    better()
    this.#child.send('go')
    return (await this.#said()) as SenderReport
  }

  /** Nothing keeps it: no timer, no worker, no lock. */
  async end(): Promise<void> {
    this.#child.send('end')
    expect(await this.#gone).toEqual([0, null])
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }
}

let sender: Sender | undefined
afterAll(() => sender?.kill())

/** Sends to the database. `worst` happens between what is sent before and after, `better` before the last sends. */
async function sending(database: string, plan: Partial<SenderPlan>, worst: () => void = () => {}, better: () => void = () => {}): Promise<SenderReport> {
  const used = (sender ??= new Sender())
  try {
    return await used.perform({ database, before: 0, after: 5, bytes: 10, busyTimeout: 300, ...plan }, worst, better)
  } catch (error) {
    used.kill()
    sender = undefined
    throw error
  }
}

async function signalsIn(database: string): Promise<string[]> {
  const store = new LibSQLStore({ url: `file:${database}` })
  try {
    return (await store.listSignals({ threadId: 't' })).map(({ id }) => id)
  } finally {
    await store.close()
  }
}

const codes = (report: SenderReport) => [...new Set(report.refused.map(({ code }) => code))]

/** Overwrites a part of a file with noise. */
function spoil(path: string, from: number, length: number): void {
  const chance = new Chance(7)
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.from(Array.from({ length }, () => chance.below(256))), 0, length, from)
  closeSync(file)
}

async function fill(database: string): Promise<void> {
  const report = await sending(database, { before: 5, after: 20, bytes: 3_000 })
  expect(report.refused).toEqual([])
}

describe('[A1.4] a database that something is wrong with', () => {
  const another = join(work, 'another.db')
  beforeAll(() => fill(another))
  /** A database that a process filled and closed. */
  const filled = (database: string) => copyFileSync(another, database)

  it('is full: what was stored stays, the rest is refused by name, and it goes on when there is room', async ({ skip }) => {
    const disk = smallDisk('1m')
    if (disk === undefined) return skip('no disk can be mounted here')
    const database = join(disk, 'heed.db')
    const report = await sending(database, { after: 60, bytes: 40_000 }, undefined, () => execFileSync('mount', ['-o', 'remount,size=32m', disk]))
    expect(report.stored).toContain('after-0')
    expect(codes(report)).toEqual(['store_full'])
    expect(report.refused.every(({ retryable }) => retryable)).toBe(true)
    for (const { id } of report.refused) expect(report.outcomes[id]).toBe('rejected')
    expect(report.stored.slice(-3)).toEqual(['again-0', 'again-1', 'again-2'])
    expect(await signalsIn(database)).toEqual(report.stored)
  })

  it('can only be read: it is refused at the first use', async () => {
    const disk = smallDisk('8m') ?? newFolder()
    const database = join(disk, 'heed.db')
    filled(database)
    if (isRoot) execFileSync('mount', ['-o', 'remount,ro', disk])
    else {
      chmodSync(database, 0o444)
      chmodSync(disk, 0o555)
      undo.push(() => chmodSync(disk, 0o755))
    }
    const report = await sending(database, {})
    expect(report.stored).toEqual([])
    expect(codes(report)).toEqual(['store_readonly'])
  })

  it('has random bytes from its start', async () => {
    const database = join(newFolder(), 'heed.db')
    filled(database)
    spoil(database, 0, 100)
    const report = await sending(database, {})
    expect(report.stored).toEqual([])
    expect(codes(report)).toEqual(['store_corrupt'])
  })

  it('has random bytes in its middle', async () => {
    const database = join(newFolder(), 'heed.db')
    filled(database)
    const pages = statSync(database).size / 4096
    expect(pages).toBeGreaterThan(20)
    for (let page = 1; page < pages; page++) spoil(database, page * 4096, 1_000)
    const report = await sending(database, {})
    expect(report.stored).toEqual([])
    expect(codes(report)).toEqual(['store_corrupt'])
  })

  it('is locked by a program that never releases it', async () => {
    const database = join(newFolder(), 'heed.db')
    filled(database)
    const other = new DatabaseSync(database)
    other.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    const report = await sending(database, {}, undefined, () => other.close())
    expect(codes(report)).toEqual(['store_failed'])
    expect(report.refused.map(({ message, retryable }) => [message.includes('held by another process'), retryable])).toEqual(Array.from({ length: 5 }, () => [true, true]))
    expect(report.stored).toEqual(['again-0', 'again-1', 'again-2'])
    expect((await signalsIn(database)).slice(-3)).toEqual(report.stored)
  })

  it('was written by a newer version', async () => {
    const database = join(newFolder(), 'heed.db')
    filled(database)
    const other = new DatabaseSync(database, { timeout: 60_000 })
    other.exec('PRAGMA user_version = 999')
    other.close()
    const report = await sending(database, {})
    expect(report.stored).toEqual([])
    expect(codes(report)).toEqual(['store_newer'])
  })

  it('is brought to a newer version while it is open: nothing more is written', async () => {
    const database = join(newFolder(), 'heed.db')
    const report = await sending(database, { before: 5 }, () => {
      const other = new DatabaseSync(database, { timeout: 10_000 })
      other.exec('PRAGMA user_version = 999')
      other.close()
    })
    expect(report.stored).toHaveLength(5)
    expect(codes(report)).toEqual(['store_newer'])
    expect(report.refused).toHaveLength(8)
  })

  it('lost a table while it is open', async () => {
    const database = join(newFolder(), 'heed.db')
    const report = await sending(database, { before: 5 }, () => {
      const other = new DatabaseSync(database, { timeout: 10_000 })
      other.exec('DROP TABLE heed_mailbox')
      other.close()
    })
    expect(report.stored).toHaveLength(5)
    expect(codes(report)).toEqual(['store_corrupt'])
    expect(report.refused).toHaveLength(8)
  })

  it('has random bytes in an index that a send reads', async () => {
    const database = join(newFolder(), 'heed.db')
    filled(database)
    const other = new DatabaseSync(database, { timeout: 60_000 })
    other.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    const page = Number(other.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'heed_mailbox_id'").get()?.rootpage)
    const size = Number(other.prepare('PRAGMA page_size').get()?.page_size)
    other.close()
    spoil(database, (page - 1) * size, size - 96)
    const report = await sending(database, {})
    expect(report.stored).toEqual([])
    expect(codes(report)).toEqual(['store_corrupt'])
  })

  it('[A1.6] is opened, and then the process has no file descriptors left: everything is stored', async () => {
    const database = join(newFolder(), 'heed.db')
    const exhausted = new Sender('ulimit -n 256; ')
    undo.push(() => exhausted.kill())
    const report = await exhausted.perform({ database, before: 0, after: 5, bytes: 10, busyTimeout: 300, exhaust: true }, () => {}, () => {})
    await exhausted.end()
    expect(report.refused).toEqual([])
    expect(report.stored).toHaveLength(8)
    expect(await signalsIn(database)).toEqual(report.stored)
  })

  it.each<[string, (database: string) => void]>([
    ['deleted', (database) => ['', '-wal', '-shm'].forEach((end) => rmSync(`${database}${end}`))],
    ['deleted with its folder', (database) => rmSync(join(database, '..'), { recursive: true })],
    ['moved away', (database) => renameSync(database, `${database}.old`)],
    ['replaced', (database) => {
      renameSync(database, `${database}.old`)
      new DatabaseSync(database).close()
    }],
    ['emptied', (database) => truncateSync(database, 0)],
    ['cut in the middle', (database) => truncateSync(database, 5 * 4096)],
    ['overwritten with another program\'s', (database) => {
      const other = new DatabaseSync(`${database}.other`)
      other.exec('CREATE TABLE notes (text TEXT)')
      other.close()
      copyFileSync(`${database}.other`, database)
    }],
    ['overwritten with another Heed\'s', (database) => copyFileSync(another, database)],
    ['overwritten with noise', (database) => spoil(database, 0, 20_000)],
    ['left without what its log had', (database) => truncateSync(`${database}-wal`, 0)],
  ])('is %s under us: nothing is confirmed any more', async (_, worst) => {
    const database = join(newFolder(), 'heed.db')
    const report = await sending(database, { before: 5 }, () => worst(database))
    expect(report.stored).toEqual(['before-0', 'before-1', 'before-2', 'before-3', 'before-4'])
    expect(codes(report)).toEqual(['store_gone'])
    expect(report.refused).toHaveLength(8)
  })

  it('keeps no process that has closed it, whatever was wrong', async () => {
    await sending(join(newFolder(), 'heed.db'), {})
    await sender?.end()
    sender = undefined
  })
})

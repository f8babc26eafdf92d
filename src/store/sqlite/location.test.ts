import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished, vi } from 'vitest'
import { makeFolder } from './location.ts'

/** The inodes that are synced from here on. */
async function syncedInodes(): Promise<number[]> {
  const inodes: number[] = []
  const handle = await open(tmpdir(), 'r')
  const handles = Object.getPrototypeOf(handle) as FileHandle
  await handle.close()
  const { sync } = handles
  const spy = vi.spyOn(handles, 'sync').mockImplementation(async function record(this: FileHandle) {
    await sync.call(this)
    inodes.push((await this.stat()).ino)
  })
  onTestFinished(() => spy.mockRestore())
  return inodes
}

it('[A1.7] syncs the folder above each folder that it makes, and no other', async () => {
  const base = mkdtempSync(join(tmpdir(), 'heed-folders-'))
  onTestFinished(() => rmSync(base, { recursive: true, force: true }))
  const synced = await syncedInodes()
  await makeFolder(join(base, 'a', 'b', 'c'))
  expect(synced.splice(0)).toEqual([base, join(base, 'a'), join(base, 'a', 'b')].map((folder) => statSync(folder).ino))
  await makeFolder(join(base, 'a', 'b', 'c'))
  expect(synced).toEqual([])
})

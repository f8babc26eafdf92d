import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { KeepAlive } from '../../src/base/promises.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-listening-'))
const children: ChildProcess[] = []
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGKILL')))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function listener(how: string) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'listener.ts'), `file:${join(folder, `${how}.db`)}`, how], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  return child
}

async function line(child: ChildProcess): Promise<string> {
  let text = ''
  for await (const piece of child.stdout ?? []) if ((text += String(piece)).includes('\n')) break
  return text
}

describe('a program that only subscribes', () => {
  it('[W5.1] stays alive after the last chunk', async () => {
    const child = listener('forever')
    const ended = once(child, 'exit')
    expect(await line(child)).toBe('Said.Said.\n')
    child.kill('SIGTERM')
    // It ended because it was aborted, and not by itself.
    expect(await ended).toEqual([null, 'SIGTERM'])
  })

  it.each(['close', 'unsubscribe', 'break'])('[W5.1] ends by itself after %s', async (how) => {
    const child = listener(how)
    expect(await once(child, 'exit')).toEqual([0, null])
  })
})

describe('a program that is kept alive', () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

  it('[W5.1] holds the process while a reader waits', async () => {
    await setImmediate()
    const before = timers()
    const keepAlive = new KeepAlive()
    keepAlive.begin()
    keepAlive.begin()
    expect(timers()).toBe(before + 1)
    keepAlive.end()
    expect(timers()).toBe(before + 1)
    keepAlive.end()
    expect(timers()).toBe(before)
    keepAlive.begin()
    keepAlive.close()
    keepAlive.begin()
    expect(timers()).toBe(before)
  })
})

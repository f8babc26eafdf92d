import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { over, startServer } from './server.ts'

/** Keeps the server that the test files of one run share, until the run is over or killed. Its folder goes when the server has ended. */
const [folder = '', address = ''] = process.argv.slice(2)
const runner = Number(/heed-tests-(\d+)/.exec(folder)?.[1] ?? process.ppid)
try {
  const server = await startServer(folder, { synchronous_commit: 'off' }, { trusting: true })
  writeFileSync(`${address}.part`, server.url)
  renameSync(`${address}.part`, address)
  while (existsSync(folder) && !existsSync(join(folder, over)) && isAlive(runner)) await wait(100)
  await server.stop()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

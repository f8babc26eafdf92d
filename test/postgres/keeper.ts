import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { startServer } from './server.ts'

/** Keeps the server that the test files of one run share, until the run removes its folder or is killed. */
const [folder = '', address = ''] = process.argv.slice(2)
const runner = Number(/heed-tests-(\d+)/.exec(folder)?.[1] ?? process.ppid)
const server = await startServer(folder, { synchronous_commit: 'off' }, { trusting: true })
writeFileSync(`${address}.part`, server.url)
renameSync(`${address}.part`, address)
while (existsSync(address) && isAlive(runner)) await wait(200)
await server.stop()

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { TestProject } from 'vitest/node'
import { browserEntries, entriesOf } from '../scripts/checks/entries.ts'
import { endSharedServer } from './postgres/server.ts'

let folder = ''

/** Makes the folder of the run's databases. */
export async function setup({ config }: TestProject): Promise<void> {
  folder = config.env.TMPDIR as string
  mkdirSync(folder, { recursive: true })
  await fillCompileCache(config)
}

export async function teardown(): Promise<void> {
  await endSharedServer(folder)
  // A process that a test killed may still remove or write its files.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
}

/** A process writes the cache of compiled modules when it ends by itself, and most child processes of the tests are killed. */
async function fillCompileCache({ root, env }: TestProject['config']): Promise<void> {
  const entries = entriesOf(root).filter(({ name }) => !browserEntries.includes(name))
  const script = entries.map(({ source }) => `import ${JSON.stringify(pathToFileURL(join(root, source)).href)}`).join('\n')
  const child = spawn(process.execPath, ['--input-type=module', '--eval', `${script}\nprocess.exit()`], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`The process that fills the compile cache ended with ${code}.`)
}

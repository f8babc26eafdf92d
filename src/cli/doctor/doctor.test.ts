import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Agent, Heed, silentLogger } from '../../index.ts'
import { LibSQLStore } from '../../store/sqlite/index.ts'
import { scriptedModel } from '../../testing/index.ts'
import { findProgram, whySkipped } from '../../../scripts/programs.ts'
import { RedisServer } from '../../../test/redis/redis-server.ts'

const program = join(import.meta.dirname, '..', 'command-line.ts')
const source = pathToFileURL(join(import.meta.dirname, '..', '..')).href
const redis = await findProgram('redis')
let folder: string

/** Runs `heed` in the folder, without a terminal. The folder and what differs between machines is left out of what it printed. */
async function heed(...args: string[]): Promise<{ code: number | null; output: string; errors: string }> {
  const child = spawn(process.execPath, [program, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let [output, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (errors += text))
  await once(child, 'close')
  const plain = (text: string) => text.replaceAll(folder, '').replace(/(Node|Redis) \d+\.\d+\.\d+/g, '$1 1.2.3')
  return { code: child.exitCode, output: plain(output), errors: plain(errors) }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'heed-doctor-'))
  const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: ['On'], hang: true }], { loop: true }) })
  const storage = new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
  const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
  await agent.sendMessage('Go.', { resourceId: 'u', threadId: 't' }).stored
  await heed.close()
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('heed doctor', () => {
  it('[B4.1] says what is right, what is wrong and what to do, and creates nothing', async () => {
    expect(await heed('doctor', '--url', 'file:./heed.db')).toEqual({
      code: 0,
      errors: '',
      output: `  ok    Node 1.2.3
  ok    The disk has enough space.
  ok    file:/heed.db opens, and its schema is up to date.
  ok    The database can be written.
  ok    The clocks of the database and of this machine agree.
  warn  No process has this database open.
        Start one: until then messages wait.
  warn  1 thread needs a runner.
        Start a process that has the agents guide, or wait for the limit of runs.
  ok    No run is parked.

2 warnings.
`,
    })
    expect(existsSync(join(folder, 'heed.db-bus', 'bus.db'))).toBe(true)
    const none = await heed('doctor', '--url', 'file:./none.db')
    expect(none).toMatchObject({ code: 0, output: expect.stringContaining('/none.db does not exist.\n        The first process creates it.') as string })
    expect(existsSync(join(folder, 'none.db'))).toBe(false)
  })

  it('[B4.1] reads the Heed of a module, and says what is wrong with one', async () => {
    const module = `import { Agent, Heed } from '${source}/index.ts'\nimport { LibSQLStore } from '${source}/store/sqlite/index.ts'\n`
      + "export const heed = new Heed({ agents: { guide: new Agent({ id: 'guide', model: 'openai/gpt-5.5' }) }, storage: new LibSQLStore({ url: 'file:./heed.db' }) })\n"
    writeFileSync(join(folder, 'heed.ts'), module)
    writeFileSync(join(folder, 'empty.ts'), 'export {}\n')
    writeFileSync(join(folder, 'broken.ts'), "throw new Error('not today')\n")
    expect(await heed('doctor', './heed.ts')).toMatchObject({ code: 0, output: expect.stringContaining('file:/heed.db opens') as string })
    expect(await heed('doctor', './empty.ts')).toMatchObject({ code: 1, output: '', errors: expect.stringContaining('heed doctor: empty.ts exports no Heed.') as string })
    expect(await heed('doctor', './broken.ts')).toMatchObject({ code: 1, output: '', errors: expect.stringContaining('heed doctor: not today') as string })
  })

  it('[B4.1] fails for a database of a newer Heed, and for a file that is none', async () => {
    const newer = new DatabaseSync(join(folder, 'newer.db'))
    newer.exec('PRAGMA user_version = 999')
    newer.close()
    writeFileSync(join(folder, 'text.db'), 'This is no database, whatever its name says.'.repeat(100))
    expect(await heed('doctor', '--url', 'file:./newer.db')).toMatchObject({ code: 5, output: expect.stringMatching(/fail {2}\/newer.db has schema 999, and this Heed knows \d+\.\n {8}Run the newer Heed/) as string })
    expect(await heed('doctor', '--url', 'file:./text.db')).toMatchObject({ code: 5, output: expect.stringContaining('fail  /text.db can not be read: file is not a database') as string })
  })

  it('[B4.1] prints JSON for programs, and refuses what it can not use', async () => {
    const { code, output } = await heed('doctor', '--url', 'file:./heed.db', '--json')
    const { ok, findings } = JSON.parse(output) as { ok: boolean; findings: Array<{ check: string; status: string; remedy?: string }> }
    expect([code, ok]).toEqual([0, true])
    expect(findings.map(({ check, status }) => `${check} ${status}`)).toEqual([
      'node ok', 'disk ok', 'storage ok', 'write ok', 'clock ok', 'processes warn', 'orphans warn', 'parked ok',
    ])
    expect(findings.filter(({ status, remedy }) => status !== 'ok' && !remedy)).toEqual([])
    for (const args of [['./a.ts', '--url', 'file:x'], ['a', 'b'], ['./a.ts', '--redis', 'redis://x'], ['--fast']])
      expect(await heed('doctor', ...args)).toMatchObject({ code: 2, output: '', errors: expect.stringMatching(/^heed doctor: /) as string })
  })

  it.skipIf('missing' in redis)(`[B4.1] checks Redis, its settings, and that it is there, without its password${whySkipped(redis)}`, async () => {
    const server = await RedisServer.start('--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru')
    try {
      const { code, output } = await heed('doctor', '--url', 'file:./heed.db', '--redis', server.url)
      expect([code, output.split('No run is parked.\n')[1]]).toEqual([0, `  ok    Redis 1.2.3 answers.
  warn  maxmemory-policy is allkeys-lru: Redis may remove the inboxes of processes.
        CONFIG SET maxmemory-policy noeviction, or a Redis of its own for Heed.
  ok    The bus answers.
  warn  No other process is connected to it.
        Start one, or check that all have the same keyPrefix and the same namespace of their storage.

4 warnings.
`])
    } finally {
      await server.end()
    }
    const gone = await heed('doctor', '--url', 'file:./heed.db', '--redis', server.url.replace('//', '//:very-secret-word@'))
    expect(gone).toMatchObject({ code: 5, errors: '', output: expect.stringMatching(/fail {2}Redis can not be reached: .*ECONNREFUSED/) as string })
    expect(gone.output).not.toContain('very-secret-word')
  })
})

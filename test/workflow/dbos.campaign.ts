import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { entriesOf } from '../../scripts/checks/entries.ts'
import { InMemoryStore, type WorkflowLike } from '../../src/index.ts'
import { workflowConformance, type ConformingWorkflows, type WorkflowHarness } from '../../src/testing/index.ts'
import { noPostgres, startServer, whyNoPostgres, type Server } from '../postgres/server.ts'

const root = join(import.meta.dirname, '../..')
const example = join(root, 'examples/dbos')
const missing = await whyMissing()

/** Installs the packages of the example, which are none of Heed's. Why they are missing goes into the titles of the tests. */
async function whyMissing(): Promise<string> {
  if (existsSync(join(example, 'node_modules/@dbos-inc/dbos-sdk'))) return ''
  try {
    await promisify(execFile)('npm', ['ci', '--no-audit', '--no-fund'], { cwd: example, timeout: 300_000 })
    return ''
  } catch (error) {
    return ` (skipped: DBOS could not be installed: ${String((error as Error).message).split('\n')[0]})`
  }
}

/** The parts of DBOS and of the example that the tests use. They are not there where the example is not installed. */
interface Dbos {
  setConfig(config: object): void
  launch(): Promise<void>
  shutdown(options?: object): Promise<void>
  sleep(ms: number): Promise<void>
}
interface Context {
  runId: string
  step<Result>(name: string, work: () => Promise<Result>): Promise<Result>
  ask(question: unknown): Promise<unknown>
}
type DbosWorkflow = (options: { id: string; inputSchema: object; run(input: { n: number }, context: Context): Promise<{ n: number }> }) => WorkflowLike

let folder = ''
let server: Server | undefined
let dbos: Dbos | undefined
let workflows: ConformingWorkflows
let effect: (runId: string) => void = () => {}

/** The example with the sources of Heed, where node finds the packages of the example. */
async function built(): Promise<string> {
  const dir = join(example, 'node_modules/.heed-example')
  mkdirSync(dir, { recursive: true })
  const alias = Object.fromEntries(entriesOf(root).map(({ specifier, source }) => [specifier, [join(root, source)]]))
  // The longest names first: an alias is a prefix too.
  const longestFirst = Object.fromEntries(Object.entries(alias).toSorted(([one], [other]) => other.length - one.length))
  const worker = (name: string) => join(root, `src/store/sqlite/${name}.ts`)
  const build = await rolldown({
    input: { order: join(example, 'order.ts'), 'checkpoint-worker': worker('checkpoint-worker'), 'bulk-worker': worker('bulk-worker') },
    platform: 'node', external: [/^node:/, /^@dbos-inc\//, /^pg$/, /^@ai-sdk\//], resolve: { alias: longestFirst }, logLevel: 'silent',
  })
  await build.write({ dir, format: 'esm', entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
  await build.close()
  return join(dir, 'order.js')
}

async function order(program: string, url: string, ...args: string[]): Promise<{ output: string; signal: string | null }> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, DATABASE_URL: url } })
  let [output, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (code !== null && code !== 0) throw new Error(`The process failed with ${code}: ${errors}`)
  return { output: output.trim(), signal }
}

describe.skipIf(missing !== '' || noPostgres)(`workflows on DBOS${missing}${whyNoPostgres}`, () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-dbos-'))
    server = await startServer(folder)
    const { DBOS } = (await import(join(example, 'node_modules/@dbos-inc/dbos-sdk/dist/src/index.js'))) as { DBOS: Dbos }
    const { dbosWorkflow } = (await import(join(example, 'dbos-workflow.ts'))) as { dbosWorkflow: DbosWorkflow }
    const inputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }
    workflows = {
      adds: dbosWorkflow({
        id: 'adds', inputSchema,
        run: ({ n }, { step, runId }) => step('add', async () => {
          effect(runId)
          return { n: n + 1 }
        }),
      }),
      asks: dbosWorkflow({ id: 'asks', inputSchema, run: async ({ n }, { ask }) => ({ n: n + ((await ask({ question: 'How much?' })) as { n: number }).n }) }),
      fails: dbosWorkflow({ id: 'fails', inputSchema, run: () => Promise.reject(new Error('No money.')) }),
      waits: dbosWorkflow({ id: 'waits', inputSchema, run: async ({ n }) => { await DBOS.sleep(3_600_000); return { n } } }),
    }
    DBOS.setConfig({ name: 'heed-conformance', systemDatabaseUrl: server.url, logLevel: 'error' })
    await DBOS.launch()
    dbos = DBOS
  })
  afterAll(async () => {
    await dbos?.shutdown()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const harness: WorkflowHarness = {
    storage: () => new InMemoryStore(),
    workflows(count) {
      effect = count
      return workflows
    },
  }
  it.each(workflowConformance(harness))('$name', async ({ run }) => {
    await expect(run(harness)).resolves.toBeUndefined()
  })

  it('[F5.4] an agent on PostgreSQL calls one that asks; its process is killed, and another answers the question', async () => {
    const program = await built()
    const asked = await order(program, server?.url ?? '', 'die')
    expect([asked.signal, JSON.parse(asked.output)]).toEqual(['SIGKILL', expect.objectContaining({ workflowId: 'buy', payload: { question: 'Buy a bell for 600?' } })])
    const answered = await order(program, server?.url ?? '', 'approve')
    expect(answered.output).toBe('Done: paid 600 for a bell.')
  })
})

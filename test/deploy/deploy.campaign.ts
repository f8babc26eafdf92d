import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { HeedClient } from '../../src/client/index.ts'
import { HeedProcess } from '../cli/heed-process.ts'
import { imports, project } from '../cli/project.ts'
import { noPostgres, startServer, whyNoPostgres, type Server } from '../postgres/server.ts'

interface Compose {
  services: {
    postgres: { command: string[] }
    agents: { command: string[]; environment: Record<string, string>; healthcheck: { test: string[] }; stop_grace_period: string }
  }
}

interface Container {
  command: string[]
  env: Array<{ name: string; value?: string }>
  readinessProbe: { httpGet: { path: string; port: number } }
  livenessProbe: { httpGet: { path: string; port: number } }
}

interface Deployment {
  spec: { template: { spec: { terminationGracePeriodSeconds: number; initContainers: [Container]; containers: [Container] } } }
}

/** The documents of a file below docs/deploy. Throws where it is no YAML. */
function documents(name: string): unknown[] {
  return parseAllDocuments(readFileSync(join(import.meta.dirname, '../../docs/deploy', name), 'utf8')).map((document) => {
    if (document.errors.length > 0) throw new Error(document.errors.map(String).join('\n'))
    return document.toJS() as unknown
  })
}

const [compose] = documents('compose.yaml') as [Compose]
const [deployment, service] = documents('kubernetes.yaml') as [Deployment, { spec: { ports: [{ targetPort: number }] } }]
const key = 'a-long-random-key-of-the-tests'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  return port
}

describe.skipIf(noPostgres)(`the files of docs/deploy, without containers${whyNoPostgres}`, () => {
  let server: Server
  const folder = join(tmpdir(), `heed-deploy-${process.pid}`)
  beforeAll(async () => {
    // The settings of the compose file are settings of the server.
    const settings = compose.services.postgres.command.flatMap((word, at, all) => (all[at - 1] === '-c' ? [word.split('=') as [string, string]] : []))
    expect(settings.length).toBeGreaterThan(0)
    server = await startServer(folder, Object.fromEntries(settings), { trusting: true })
  })
  afterAll(async () => {
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const source = pathToFileURL(join(import.meta.dirname, '../../src/store/postgres/index.ts')).href
  const files = { 'heed.ts': `${imports}
import { PostgresStore } from '${source}'
const guide = new Agent({ id: 'guide', model: scriptedModel(['Take the train at nine.'], { loop: true }) })
export const heed = new Heed({ agents: { guide }, storage: new PostgresStore({ connectionString: process.env.DATABASE_URL }) })
export const server = { auth: apiKeys({ [process.env.GUIDE_KEY]: { id: 'support', resources: '*' } }) }` }

  /** Starts a container's command with its variables, as the platform would. */
  async function start(command: readonly string[], names: readonly string[], cwd: string): Promise<{ url: string; port: string; running: HeedProcess }> {
    const [program = '', ...args] = command
    expect(program).toBe('node_modules/.bin/heed')
    const port = String(await freePort())
    const known: Record<string, string> = { DATABASE_URL: server.url, GUIDE_KEY: key, PORT: port }
    expect(names.toSorted()).toEqual(Object.keys(known).toSorted())
    const running = new HeedProcess(args, { cwd, env: known })
    onTestFinished(() => running.end())
    return { url: `http://127.0.0.1:${port}`, port, running }
  }

  async function healthy(port: string): Promise<number | null> {
    const [kind, ...command] = compose.services.agents.healthcheck.test
    expect([kind, command[0]]).toEqual(['CMD', 'node'])
    const child = spawn(process.execPath, command.slice(1), { env: { ...process.env, PORT: port }, stdio: 'ignore' })
    await once(child, 'exit')
    return child.exitCode
  }

  const ask = (url: string) => new HeedClient({ baseUrl: url, headers: { authorization: `Bearer ${key}` } }).getAgent('guide')
    .generate('How do I get to Bern?', { memory: { thread: 'trip', resource: 'user-7' } }).then(({ text }) => text as string)

  it('compose.yaml: two processes become healthy, serve one thread, and end within their grace', async () => {
    const { command, environment, stop_grace_period } = compose.services.agents
    const { folder: cwd } = project(files)
    const nodes = await Promise.all([1, 2].map(() => start(command, Object.keys(environment), cwd)))
    expect(await healthy('1')).toBe(1)
    for (const { port, running } of nodes) await expect.poll(async () => (running.child.exitCode === null ? healthy(port) : running.errors), { interval: 200 }).toBe(0)
    for (const { url } of nodes) expect(await ask(url)).toBe('Take the train at nine.')
    const [first, second] = nodes
    const since = performance.now()
    first?.running.child.kill('SIGTERM')
    expect(await first?.running.ended).toMatchObject({ code: 0 })
    expect(performance.now() - since).toBeLessThan(Number.parseInt(stop_grace_period, 10) * 1_000)
    expect(await ask(second?.url ?? '')).toBe('Take the train at nine.')
  })

  it('kubernetes.yaml: the doctor lets the pod start, the probes are answered, and the grace is longer than the drain', async () => {
    const { terminationGracePeriodSeconds, initContainers: [doctor], containers: [agents] } = deployment.spec.template.spec
    expect(terminationGracePeriodSeconds).toBeGreaterThan(20)
    const { folder: cwd } = project(files)
    const { running, url } = await start(agents.command, agents.env.map(({ name }) => name), cwd)
    const port = Number(agents.env.find(({ name }) => name === 'PORT')?.value)
    expect([agents.readinessProbe.httpGet.port, agents.livenessProbe.httpGet.port, service.spec.ports[0].targetPort]).toEqual([port, port, port])
    for (const { httpGet: { path } } of [agents.livenessProbe, agents.readinessProbe]) {
      await expect.poll(() => (running.child.exitCode === null ? fetch(url + path).then(({ status }) => status, () => 0) : running.errors), { interval: 100 }).toBe(200)
    }
    const examined = new HeedProcess(doctor.command.slice(1).map((word) => word.replace('$(DATABASE_URL)', server.url)), { cwd })
    onTestFinished(() => examined.end())
    expect(await examined.ended).toMatchObject({ code: 0, output: expect.stringContaining('PostgreSQL') as string })
  })
})

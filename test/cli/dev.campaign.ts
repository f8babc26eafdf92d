import { mkdirSync, symlinkSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { HeedProcess, heed } from './heed-process.ts'
import { imports, project } from './project.ts'

interface Event {
  type: string
  url: string
}

/** A `heed dev` of a project on a free port. It ends with the test. */
class Dev {
  readonly process: HeedProcess

  constructor(folder: string, ...args: string[]) {
    this.process = new HeedProcess(['dev', '--json', '--port', '0', ...args], { cwd: folder })
    onTestFinished(async () => {
      this.process.child.kill('SIGTERM')
      await this.process.ended
    })
  }

  get events(): Event[] {
    return this.process.output.trim().split('\n').filter(Boolean).map((line) => JSON.parse(line) as Event)
  }

  get reloads(): number {
    return this.events.filter(({ type }) => type === 'reloaded').length
  }

  async ready(): Promise<HeedClient> {
    await expect.poll(() => this.events.length > 0 || this.process.child.exitCode !== null).toBe(true)
    if (this.events.length === 0) throw new Error(this.process.errors)
    return new HeedClient({ baseUrl: this.events[0]!.url })
  }

  reloaded(count = 1): Promise<void> {
    return expect.poll(() => this.reloads).toBeGreaterThanOrEqual(count)
  }
}

/** An agent whose answer and instructions name the version of the code; on a file, so that threads stay. */
const guide = (version: string, storage = "new LibSQLStore({ url: 'file:./heed.db' })") => `${imports}
const guide = new Agent({ id: 'guide', model: scriptedModel(['This is ${version}.'], { loop: true }) })
export const heed = new Heed({ agents: { guide }, storage: ${storage} })
`

/** `generate()` has no key by which it could be repeated: a connection that the old process closes at that moment fails it. */
async function answer(client: HeedClient): Promise<unknown> {
  const ask = () => client.getAgent('guide').generate('Who is this?')
  return (await ask().catch(ask)).text
}

describe('heed dev', () => {
  it('[C4.1] serves the file, and serves the new code after a change of it, of a module, of .env and of a linked package', async () => {
    const { folder, write } = project({
      'heed.ts': guide('one').replace("'This is one.'", '`${name} ${linked} ${process.env.PLACE}`') + "import { name } from './name.ts'\nimport { linked } from 'linked'\n",
      'name.ts': "export const name = 'A'",
      '.env': 'PLACE=here',
      'packages/linked/package.json': '{ "name": "linked", "type": "module", "exports": "./index.ts" }',
      'packages/linked/index.ts': "export const linked: string = 'L'",
    })
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(join(folder, 'packages/linked'), join(folder, 'node_modules/linked'))
    const dev = new Dev(folder)
    const client = await dev.ready()
    expect(await answer(client)).toBe('A L here')
    write('name.ts', "export const name = 'B'")
    await dev.reloaded(1)
    expect(await answer(client)).toBe('B L here')
    write('packages/linked/index.ts', "export const linked: string = 'M'")
    await dev.reloaded(2)
    expect(await answer(client)).toBe('B M here')
    write('.env', 'PLACE=there')
    await dev.reloaded(3)
    expect(await answer(client)).toBe('B M there')
    // A file that was not loaded changes nothing.
    write('notes.ts', 'export {}')
    write('name.ts', "export const name = 'C'")
    await dev.reloaded(4)
    expect(dev.reloads).toBe(4)
  })

  it('[C4.2] keeps the old code in use while the new one does not load, reports its place, and goes on when it does', async () => {
    const { folder, write } = project({ 'heed.ts': guide('one') })
    const dev = new Dev(folder)
    const client = await dev.ready()
    const broken = `${guide('two')}\nconst = 1\n`
    write('heed.ts', broken)
    await expect.poll(() => dev.process.errors).toContain('syntax_error')
    const place = `heed.ts:${broken.split('\n').indexOf('const = 1') + 1}:7`
    expect(JSON.parse(dev.process.errors)).toMatchObject({ error: { code: 'syntax_error', details: { place } } })
    expect(await answer(client)).toBe('This is one.')
    write('heed.ts', guide('three'))
    await dev.reloaded()
    expect(await answer(client)).toBe('This is three.')
  })

  it('[C4.2] waits for a file that loads if the first does not, holds its port, and answers 503 meanwhile', async () => {
    const { folder, write } = project({ 'heed.ts': "import './later.ts'\n" })
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as AddressInfo
    free.close()
    const dev = new HeedProcess(['dev', '--port', String(port)], { cwd: folder })
    onTestFinished(async () => {
      dev.child.kill('SIGTERM')
      await dev.ended
    })
    await expect.poll(() => dev.errors).toContain('save the file to try again')
    const refused = await fetch(`http://127.0.0.1:${port}/api/health`)
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'closed', retryable: true }])
    expect(dev.errors).toContain("heed dev: Cannot find module 'later.ts' imported from heed.ts.\n  at heed.ts\n")
    write('later.ts', guide('one'))
    await expect.poll(() => dev.errors).toContain('heed.ts exports no Heed.')
    write('heed.ts', "export { heed } from './later.ts'\n")
    await expect.poll(() => dev.output).toMatch(/^http:\/\/127\.0\.0\.1:\d+\n/)
    expect(await answer(new HeedClient({ baseUrl: dev.output.trim() }))).toBe('This is one.')
  })

  it('[C4.3] continues a run with the new code: nothing that was accepted is lost, and its stream goes on at its cursor', async () => {
    // The answer with the new code waits until the subscriber has returned: one that returns after the end of the run gets a snapshot.
    const slow = (version: string, beforeAnswer = '') => `${imports}
import { existsSync } from 'node:fs'
const fileExists = async (name: string) => {
  while (!existsSync(name)) await new Promise((resolve) => setTimeout(resolve, 10))
}
const wait = createTool({ id: 'wait', description: 'Waits for a file.', execute: async () => {
  await fileExists('go')
  return { version: '${version}' }
} })
const model = scriptedModel(async ({ prompt }) => {
  if (!JSON.stringify(prompt).includes('tool-result')) return { toolCalls: [{ toolName: 'wait', input: {} }] }
  ${beforeAnswer}
  return 'Answered by ${version}.'
})
const guide = new Agent({ id: 'guide', tools: { wait }, model })
export const heed = new Heed({ agents: { guide }, storage: new LibSQLStore({ url: 'file:./heed.db' }) })
`
    const { folder, write } = project({ 'heed.ts': slow('one') })
    const dev = new Dev(folder)
    const agent = (await dev.ready()).getAgent('guide')
    const thread = { threadId: 'trip', resourceId: 'user-7' }
    const subscription = await agent.subscribeToThread(thread)
    const chunks: string[] = []
    let text = ''
    let opened = 0
    const onOpen = () => {
      if (++opened === 2) write('returned', '')
    }
    const read = (async () => {
      for await (const chunk of subscription.chunks({ delayMs: 10, onOpen })) {
        chunks.push(chunk.type)
        if (chunk.type === 'text-delta') text += chunk.payload.text
        if (chunk.type === 'finish') return
      }
    })()
    await agent.sendMessage({ message: 'Go.', ...thread })
    await expect.poll(() => chunks).toContain('tool-call')
    await agent.sendMessage({ message: 'And this.', ...thread })
    write('heed.ts', slow('two', "await fileExists('returned')"))
    await dev.reloaded()
    // The tool ends in the old process, which then closes at the boundary.
    write('go', '')
    await read
    subscription.unsubscribe()
    expect(text).toBe('Answered by two.')
    const { messages } = await agent.memory({ resourceId: 'user-7' }).listMessages({ threadId: 'trip' })
    const stored = JSON.stringify(messages)
    for (const expected of ['Go.', 'And this.', '"version":"one"', 'Answered by two.']) expect(stored).toContain(expected)
  })

  it('[C4.4] picks the next free port if the default is taken, warns once of a storage in memory, and ends with 0', async () => {
    const { folder, write } = project({ 'heed.ts': guide('one', 'new InMemoryStore()') })
    // Another test may have the default port: it would be free again when the process looks for one.
    const hold = async () => {
      const server = createServer().listen(4111, '127.0.0.1')
      return once(server, 'listening').then(() => server, () => undefined)
    }
    let taken: Server | undefined
    await expect.poll(async () => (taken ??= await hold()) !== undefined).toBe(true)
    onTestFinished(() => void taken?.close())
    const dev = new HeedProcess(['dev'], { cwd: folder })
    onTestFinished(() => dev.end())
    await expect.poll(() => dev.output).toMatch(/\n/)
    expect(Number(new URL(dev.output.trim()).port)).toBeGreaterThan(4111)
    expect(dev.errors).toContain('serving heed.ts: agents guide\n')
    expect(dev.errors).toContain(`next, in another terminal: npx heed send my-thread 'Hello' --wait answer --url ${dev.output.trim()}\n`)
    write('heed.ts', guide('two', 'new InMemoryStore()'))
    await expect.poll(() => dev.output).toContain('reloaded')
    expect(dev.errors.match(/the storage is in memory/g)).toHaveLength(1)
    dev.child.kill('SIGINT')
    expect((await dev.ended).code).toBe(0)
  })

  it('[C4.4] refuses a named port that is taken, and an address beyond this machine without auth', async () => {
    const { folder } = project({ 'heed.ts': guide('one') })
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    onTestFinished(() => void taken.close())
    const { port } = taken.address() as AddressInfo
    expect(await heed(['dev', '--port', String(port)], { cwd: folder })).toEqual({
      code: 1, output: '', errors: `heed dev: the port ${port} is taken.\n  Name another: --port, or the variable PORT\n  port_taken\n`,
    })
    const open = new HeedProcess(['dev', '--port', '0', '--host', '0.0.0.0'], { cwd: folder })
    onTestFinished(() => open.end())
    await expect.poll(() => open.errors).toContain('Serving on 0.0.0.0 needs auth.')
    expect(open.output).toBe('')
  })
})

import { createServer } from 'node:net'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { heed, HeedProcess, type RunOptions } from './heed-process.ts'
import { imports, project } from './project.ts'

const guide = `${imports}
const guide = new Agent({ id: 'guide', model: scriptedModel([{ text: ['Take the train', ' at nine.'] }], { loop: true }) })
export const heed = new Heed({ agents: { guide }, storage: new InMemoryStore() })
`

interface Ready {
  type: 'ready'
  url: string
  api: string
  agents: string[]
}

/** Starts the server of a project on a free port; it ends with the test. */
async function started(args: string[], options: RunOptions): Promise<{ running: HeedProcess; ready: Ready }> {
  const running = new HeedProcess(['start', '--json', '--port', '0', ...args], options)
  onTestFinished(() => running.end())
  await expect.poll(() => running.output || running.child.exitCode !== null).toBeTruthy()
  if (!running.output) throw new Error(running.errors)
  return { running, ready: JSON.parse(running.output) as Ready }
}

async function ask(url: string, headers: Record<string, string> = {}): Promise<string> {
  const agent = new HeedClient({ baseUrl: url, headers }).getAgent('guide')
  return (await agent.generate('How do I get to Bern?')).text as string
}

describe('heed start', () => {
  it('[C2.1] loads TypeScript as it is, prints the address, and serves the API on this machine', async () => {
    const { folder } = project({ 'heed.ts': `${guide}\nconst typed: number = 1\nexport type { }\nvoid typed` })
    const { running, ready } = await started([], { cwd: folder })
    expect(ready).toMatchObject({ type: 'ready', api: `${ready.url}/api`, file: 'heed.ts', agents: ['guide'], pid: running.child.pid })
    expect(new URL(ready.url).hostname).toBe('127.0.0.1')
    expect(await ask(ready.url)).toBe('Take the train at nine.')
    expect(running.errors).toBe('')
  })

  it('[C2.1] finds the default file and the default export, reads .env, and takes options of the server from the export server', async () => {
    const key = 'a-long-random-key-of-user-7'
    const { folder } = project({
      '.env': `GUIDE_KEY=${key}\n`,
      'src/heed.ts': `${guide.replace('export const heed', 'const made')}
export default made
export const server = { auth: apiKeys({ [process.env.GUIDE_KEY!]: { id: 'user-7', resources: ['user-7'] } }) }`,
    })
    const { ready } = await started(['--host', '0.0.0.0'], { cwd: folder })
    const url = ready.url.replace('0.0.0.0', '127.0.0.1')
    expect(await ask(url, { authorization: `Bearer ${key}` })).toBe('Take the train at nine.')
    await expect(ask(url)).rejects.toMatchObject({ code: 'unauthorized' })
  })

  it.each(['SIGTERM', 'SIGINT'] as const)('[C2.2] ends with 0 after %s', async (signal) => {
    const { folder } = project({ 'heed.ts': guide })
    const { running } = await started([], { cwd: folder })
    running.child.kill(signal)
    expect(await running.ended).toMatchObject({ code: 0, errors: '' })
  })

  it('[C2.2] ends at once with 130 at a second Ctrl-C', async () => {
    const { folder } = project({
      'heed.ts': `${guide}\nheed.close = () => new Promise(() => { setInterval(() => {}, 1_000); console.error('closes') })`,
    })
    const { running } = await started([], { cwd: folder })
    running.child.kill('SIGINT')
    await expect.poll(() => running.errors).toContain('closes')
    running.child.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130 })
  })

  it('[C2.3] names what Node does not compile, with its place and the rewrite', async () => {
    const cases: Array<[name: string, text: string, errors: string]> = [
      ['enum.ts', 'const a = 1\n\n  enum Color { red }\n', "heed start: Node strips types, and does not compile this: TypeScript enum is not supported in strip-only mode.\n  at enum.ts:3:3\n  Write an object instead of the enum: const Color = { red: 'red' } as const\n  Or compile it while it loads: npm i -D tsx, then NODE_OPTIONS='--import tsx'\n  typescript_syntax\n"],
      ['namespace.ts', 'namespace A { export const a = 1 }\n', "heed start: Node strips types, and does not compile this: TypeScript namespace declaration is not supported in strip-only mode.\n  at namespace.ts:1:1\n  Write a module or an object instead of the namespace.\n  Or compile it while it loads: npm i -D tsx, then NODE_OPTIONS='--import tsx'\n  typescript_syntax\n"],
      ['syntax.ts', 'const a = 1\n  const = 3\n', 'heed start: Unexpected token `=`. Expected yield, an identifier, [ or {.\n  at syntax.ts:2:9\n  syntax_error\n'],
      ['syntax.mjs', 'const a = 1\n  let x = = 3\n', "heed start: Unexpected token '='.\n  at syntax.mjs:2:11\n  syntax_error\n"],
      ['unclosed.ts', 'const a = {\n  b: 1,\n', 'heed start: Unexpected token `<eof>`. Expected identifier, string literal, numeric literal or [ for the computed key.\n  at unclosed.ts:2\n  syntax_error\n'],
      ['unclosed.mjs', 'const a = {\n  b: 1,\n', 'heed start: Unexpected end of input.\n  at unclosed.mjs:3\n  syntax_error\n'],
      ['of-another.ts', "import './unclosed.ts'\n", 'heed start: Unexpected token `<eof>`. Expected identifier, string literal, numeric literal or [ for the computed key.\n  at unclosed.ts:2\n  syntax_error\n'],
      ['of-another-missing.ts', "import './extension.ts'\n", "heed start: Cannot find module 'agent' imported from extension.ts.\n  at extension.ts\n  Write the whole name of the file: agent.ts\n  module_not_found\n"],
      ['throws.ts', 'function f() {\n  throw new Error("boom")\n}\nf()\n', 'heed start: boom\n  at throws.ts:2:9\n  load_failed\n'],
      ['agent.ts', `${imports}\nnew Agent({ id: 'a', modle: 'x' } as never)`, "heed start: Agent 'a' has 'modle', which is not a parameter of an agent."],
      ['extension.ts', "import './agent'\n", "heed start: Cannot find module 'agent' imported from extension.ts.\n  at extension.ts\n  Write the whole name of the file: agent.ts\n  module_not_found\n"],
      ['package.ts', "import 'no-such-package'\n", "heed start: Cannot find package 'no-such-package' imported from package.ts.\n  at package.ts\n  npm install no-such-package\n  module_not_found\n"],
      ['none.ts', 'export const heed = 1\n', 'heed start: none.ts exports no Heed.\n  at none.ts\n  Export it by default or as heed: export const heed = new Heed({ agents: { … } })\n  no_heed\n'],
    ]
    const { folder } = project(Object.fromEntries(cases))
    const ended = await Promise.all(cases.map(([name]) => heed(['start', name], { cwd: folder })))
    for (const [index, [name, , errors]] of cases.entries()) {
      expect(ended[index], name).toMatchObject({ code: 1, output: '' })
      if (name === 'agent.ts') expect(ended[index]!.errors).toMatch(/^heed start: Agent 'a' has 'modle'.*\n {2}at agent\.ts:7:1\n {2}unsupported_option\n$/)
      else expect(ended[index]!.errors, name).toBe(errors)
      expect(ended[index]!.errors, name).not.toMatch(/^\s+at .*(node:internal|\/src\/)/m)
    }
  })

  it('[C1.4] [C2.3] ends with 3 without a file, and with 1 on a taken port or beyond this machine without auth', async () => {
    const { folder } = project({ 'guide.ts': guide })
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    onTestFinished(() => void taken.close())
    const { port } = taken.address() as AddressInfo
    const [none, missing, busy, open, wrong, variable] = await Promise.all([
      heed(['start'], { cwd: folder }),
      heed(['start', 'missing.ts', '--json'], { cwd: folder }),
      heed(['start', 'guide.ts', '--port', String(port)], { cwd: folder }),
      heed(['start', 'guide.ts', '--host', '0.0.0.0', '--port', '0'], { cwd: folder }),
      heed(['start', 'guide.ts', '--port', 'http'], { cwd: folder }),
      heed(['start', 'guide.ts'], { cwd: folder, env: { PORT: '70000' } }),
    ])
    expect(none).toEqual({
      code: 3, output: '', errors: 'heed start: there is no heed.ts, heed.js, heed.mjs or src/heed.ts here.\n  Name the file that exports your Heed.\n  file_not_found\n',
    })
    expect({ code: missing.code, output: missing.output, error: JSON.parse(missing.errors) as unknown }).toMatchObject({
      code: 3, output: '', error: { error: { code: 'file_not_found', message: 'there is no file missing.ts.', retryable: false } },
    })
    expect(busy).toEqual({ code: 1, output: '', errors: `heed start: the port ${port} is taken.\n  Name another: --port, or the variable PORT\n  port_taken\n` })
    expect(open).toMatchObject({ code: 1, output: '' })
    expect(open.errors).toMatch(/^heed start: Serving on 0\.0\.0\.0 needs auth: .*\n {2}invalid_argument\n$/)
    expect(wrong).toEqual({ code: 2, output: '', errors: 'heed start: --port is a whole number from 0 to 65535.\n' })
    expect(variable).toEqual({ code: 2, output: '', errors: 'heed start: PORT is a whole number from 0 to 65535.\n' })
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { commands } from '../../src/cli/commands/index.ts'
import { apiKeys, serve } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { heed } from './heed-process.ts'
import { project } from './project.ts'

/** What each command is given beside `--help` and a wrong option: arguments that it can use where no server and no file is. */
const given: Record<string, string[]> = {
  init: ['.'],
  dev: ['missing.ts'],
  start: ['missing.ts'],
  send: ['trip', 'Hello'],
  tail: ['trip'],
  inbox: ['trip'],
  eval: ['missing.ts'],
  doctor: ['missing.ts'],
  'policy check': ['missing.cedar'],
}

/** Arguments that each command refuses: one too many, one too few, or a value that its option does not have. */
const wrong: Record<string, string[]> = {
  init: ['one', 'two'],
  dev: ['--port', 'eighty'],
  start: ['one.ts', '--port', '70000'],
  send: ['trip', 'Hello', '--wait', 'forever'],
  tail: [],
  inbox: ['trip', '--status', 'lost'],
  eval: ['--concurrency', 'many'],
  doctor: ['one.ts', 'two.ts'],
  'policy check': [],
}

/** One invocation with its output, as it is kept. */
const kept = (name: string, { code, output, errors }: Awaited<ReturnType<typeof heed>>) =>
  [`$ ${name}`, output && `--- output\n${output}`, errors && `--- errors\n${errors}`, `--- ends with ${code}\n`].filter(Boolean).join('\n')

// Without a terminal on any stream. Run with -u to write the file, and read the difference.
it('[C1.1] [C1.2] [C1.3] [C1.5] prints the kept output: help, a wrong option, no server or no file, as text and as JSON', async () => {
  const { folder } = project({ 'notes.txt': '' })
  const lines = commands.flatMap(({ name }) => {
    const words = name.split(' ')
    const args = given[name]
    return [[...words, '--help'], [...words, '--wrong'], ...(args ? [[...words, ...args], [...words, ...args, '--json']] : [])]
  })
  const ended = await Promise.all([['--help'], ...lines].map(async (args) => {
    return kept(`heed ${args.join(' ')}`, await heed(args, { cwd: folder, env: { HEED_URL: 'http://127.0.0.1:9' } }))
  }))
  await expect(ended.join('\n')).toMatchFileSnapshot('snapshots.txt')
})

it('[C1.1] [C1.3] [C1.5] prints the kept output for arguments that a command refuses, as text and as JSON', async () => {
  const { folder } = project({ 'one.ts': '', 'two.ts': '' })
  const lines = Object.entries(wrong).map(([name, args]) => [...name.split(' '), ...args])
  const ended = await Promise.all([...lines, ['send', 'trip', 'Hello', '--wait', 'forever', '--json']].map(async (args) => kept(`heed ${args.join(' ')}`, await heed(args, { cwd: folder }))))
  await expect(ended.join('\n')).toMatchFileSnapshot('wrong-arguments.txt')
})

it('[C1.4] prints the kept output for a key that the server refuses, as text and as JSON', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello.']) })
  const server = await serve(new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger }), { port: 0, auth: apiKeys({ 'a-key-of-some-length': { id: 'ann', resources: ['user-7'] } }) })
  onTestFinished(() => server.close())
  const env = { HEED_URL: server.url, HEED_API_KEY: 'another-key-of-some-length' }
  const lines = [['send', 'trip', 'Hello'], ['tail', 'trip'], ['inbox', 'trip'], ['send', 'trip', 'Hello', '--json']]
  const ended = await Promise.all(lines.map(async (args) => kept(`heed ${args.join(' ')}`, await heed(args, { env }))))
  await expect(ended.join('\n').replaceAll(server.url, 'http://SERVER')).toMatchFileSnapshot('wrong-key.txt')
})

it('[C5.1] [C5.2] prints the kept output of npm create heed', async () => {
  const { folder } = project({ 'notes.txt': '' })
  const program = join(import.meta.dirname, '../../create-heed/create-heed.js')
  const lines = [['--help'], ['--wrong'], ['--wrong', '--json'], ['.'], ['.', '--json'], ['one', 'two'], ['app', '--template', 'lost']]
  const ended = await Promise.all(lines.map(async (args) => {
    const child = spawn(process.execPath, [program, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return kept(`create-heed ${args.join(' ')}`, { code: code as number, output, errors })
  }))
  await expect(ended.join('\n')).toMatchFileSnapshot('create-heed.txt')
})

it('[C1.2] each command is in the kept output with its arguments', () => {
  const names = commands.map(({ name }) => name).toSorted()
  expect(Object.keys(given).toSorted()).toEqual(names)
  expect(Object.keys(wrong).toSorted()).toEqual(names)
})

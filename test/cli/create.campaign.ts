import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'

// From the packed tarballs, as a newcomer gets them: create, install, test, check the types, start, ask. The packages come from the registry.
const root = join(import.meta.dirname, '../..')
// CI has one of them, since each installs its own packages: `npm run test:templates` has all. `minimal` is a part of `hono`, and the React of
// `vite-react` is used from the tarball by `npm run check`.
const isWhole = process.env.HEED_TEMPLATES === 'all'
const templates = readdirSync(join(root, 'create-heed/templates')).filter((name) => name !== 'shared' && (isWhole || name === 'hono'))
let work: string
let tarballs: Record<'heed' | 'create-heed', string>

/** Without what the npm that runs this sets for the package that it runs in. */
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|INIT_CWD|NODE_COMPILE_CACHE|HEED_)/.test(name)))

function run(cwd: string, program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

function pack(folder: string): string {
  const packed = Object.values(JSON.parse(run(folder, 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', work)) as Record<string, { filename: string }>)
  return join(work, packed[0]!.filename)
}

beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'heed-create-'))
  run(root, 'npm', 'run', 'build')
  tarballs = { heed: pack(root), 'create-heed': pack(join(root, 'create-heed')) }
  writeFileSync(join(work, 'package.json'), '{ "private": true }')
  run(work, 'npm', 'install', '--no-audit', '--no-fund', tarballs['create-heed'])
}, 600_000)
afterAll(() => rmSync(work, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }))

it.each(templates)('[C5.3] the template %s from the tarballs installs, passes its tests, starts and streams an answer, and another one with `heed dev` after an edit', async (template) => {
  const began = Date.now()
  run(work, join(work, 'node_modules/.bin/create-heed'), template, '--template', template)
  const folder = join(work, template)
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<'dependencies' | 'scripts', Record<string, string>>
  manifest.dependencies.heed = `file:${tarballs.heed}`
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  run(folder, 'npm', 'install', '--no-audit', '--no-fund')
  expect(run(folder, 'npm', 'test')).toMatch(/pass 1/)
  run(folder, 'npm', 'run', 'types')
  if (manifest.scripts.build !== undefined) run(folder, 'npm', 'run', 'build')

  const question = 'How is the weather in Bern?'
  const answer = await answerOf(folder, ['npm', 'start'], question)
  expect(answer).toBe('It is 14 degrees in Bern. Edit model.ts to ask a real model.\n')
  process.stdout.write(`${template}: from create to the first answer ${((Date.now() - began) / 1_000).toFixed(0)} s\n`)

  // Edit one line, `heed dev`, and ask again.
  const edited = Date.now()
  const source = readFileSync(join(folder, 'model.ts'), 'utf8')
  writeFileSync(join(folder, 'model.ts'), source.replace('It is 14 degrees', 'It is 21 degrees'))
  const again = await answerOf(folder, ['npx', 'heed', 'dev'], question)
  expect(again).toBe('It is 21 degrees in Bern. Edit model.ts to ask a real model.\n')
  process.stdout.write(`${template}: from an edited line to the answer of heed dev ${((Date.now() - edited) / 1_000).toFixed(0)} s\n`)
}, 600_000)

/** Starts the server of a project, and asks its agent from a shell. */
async function answerOf(folder: string, [program = '', ...args]: string[], question: string): Promise<string> {
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const { port } = free.address() as AddressInfo
  free.close()
  const given = args.includes('dev') ? [...args, '--port', String(port)] : args
  const server: ChildProcess = spawn(program, given, { cwd: folder, env: { ...env, PORT: String(port) }, detached: true, stdio: 'ignore' })
  try {
    const url = `http://127.0.0.1:${port}`
    await expect.poll(() => fetch(`${url}/api/health`).then(({ status }) => status, () => 0)).toBe(200)
    const key = { HEED_API_KEY: 'change-this-development-key', HEED_URL: url }
    const sent = ['heed', 'send', `trip-${port}`, question, '--wait', 'answer']
    return execFileSync('npx', sent, { cwd: folder, env: { ...env, ...key }, encoding: 'utf8' })
  } finally {
    process.kill(-server.pid!, 'SIGTERM')
    await once(server, 'exit')
  }
}

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { providerServer, type ScriptedStep } from 'heed/testing'

const modules = join(import.meta.dirname, '..', 'node_modules')
const readme = readFileSync(join(modules, 'heed', 'README.md'), 'utf8')
const block = /(?:<!-- model: (?<script>.*?) -->\n)?```ts run\n(?<code>.*?)```\n\n```text\n(?<output>.*?)```/gs
const [withoutKey, withKey] = [...readme.matchAll(block)].map(({ groups: { script = '[]', code = '', output = '' } = {} }) => ({ script, code, output }))

interface Ended {
  code: number
  stdout: string
  stderr: string
}

/** Runs a program as its reader does: typed into an empty folder where the package is installed. */
async function run(t: TestContext, code: string | undefined, { node = process.execPath, env = {} }: { node?: string; env?: Record<string, string> } = {}): Promise<Ended> {
  const folder = mkdtempSync(join(tmpdir(), 'heed-readme-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(modules, join(folder, 'node_modules'))
  writeFileSync(join(folder, 'program.mjs'), code ?? '')
  const { OPENAI_API_KEY: _, OPENAI_BASE_URL: __, NODE_OPTIONS: ___, ...rest } = process.env
  const ended = promisify(execFile)(node, ['program.mjs'], { cwd: folder, env: { ...rest, ...env } })
  return ended.then(({ stdout, stderr }) => ({ code: 0, stdout, stderr }), (error: Ended) => error)
}

/** Each Node of this machine, with its major version. */
async function nodes(): Promise<Array<[path: string, major: number]>> {
  const places = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node')).filter((path) => existsSync(path))
  const byMajor = new Map<number, string>()
  for (const path of [process.execPath, ...places]) {
    const { stdout } = await promisify(execFile)(path, ['--version']).catch(() => ({ stdout: '' }))
    const [, major] = /^v(\d+)/.exec(stdout) ?? []
    if (major !== undefined && !byMajor.has(Number(major))) byMajor.set(Number(major), path)
  }
  return [...byMajor].map(([major, path]) => [path, major])
}

const isRejected = ({ code, stdout, stderr }: Ended) => [code, stdout, /Heed needs Node 24 or newer, and this is Node \d+\.\d+\.\d+\./.test(stderr)]

/** Checks what a program does on each Node of this machine: an older one rejects it with one sentence. */
async function onEachNode(start: (node: string) => Promise<Ended>, check: (ended: Ended) => void): Promise<void> {
  const found = await nodes()
  assert.ok(found.some(([, major]) => major >= 24))
  for (const [node, major] of found) {
    const ended = await start(node)
    if (major >= 24) check(ended)
    else assert.deepEqual(isRejected(ended), [1, '', true])
  }
}

test('the first program of README needs no key, and an older Node rejects it with one sentence', async (t) => {
  await onEachNode((node) => run(t, withoutKey?.code, { node }), ({ code, stdout, stderr }) => {
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: withoutKey?.output, stderr: '' })
  })
})

test('the second program of README prints its answer with a key', async (t) => {
  const server = await providerServer({ script: JSON.parse(withKey?.script ?? '[]') as ScriptedStep[] })
  t.after(() => server.close())
  const env = { OPENAI_API_KEY: server.openai.apiKey, OPENAI_BASE_URL: server.openai.baseURL }
  await onEachNode((node) => run(t, withKey?.code, { node, env }), ({ code, stdout }) => {
    assert.deepEqual({ code, stdout }, { code: 0, stdout: withKey?.output })
  })
})

test('the second program of README says without a key which variable to set, and ends', async (t) => {
  await onEachNode((node) => run(t, withKey?.code, { node }), ({ code, stdout, stderr }) => {
    assert.deepEqual([code, stdout.trim()], [0, ''])
    assert.match(stderr, /^Model 'openai\/gpt-5\.5' needs a key\. Set the environment variable OPENAI_API_KEY\.$/m)
  })
})

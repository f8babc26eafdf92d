import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test, type TestContext } from 'node:test'
// A project of the template needs it.
import { z } from 'zod'

void z
const modules = join(import.meta.dirname, '..', 'node_modules')
const program = join(modules, '.bin', 'heed')

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'heed-command-'))
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }))
  return folder
}

function heed(cwd: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8' })
  assert.doesNotMatch(stderr, /node:internal/)
  return { status, stdout, stderr }
}

/** Serves the project, and yields the objects that it prints. */
function serving(t: TestContext, cwd: string, command: string): AsyncIterator<string> {
  const server = spawn(program, [command, '--json', '--port', '0'], { cwd, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(async () => {
    server.kill('SIGTERM')
    assert.equal((await once(server, 'exit'))[0], 0)
  })
  return createInterface({ input: server.stdout })[Symbol.asyncIterator]()
}

test('[C5.3] heed init makes a project that passes its tests, starts, and streams an answer', async (t) => {
  const folder = folderOf(t)
  assert.equal(heed(folder, 'init', 'app').status, 0)
  const app = join(folder, 'app')
  symlinkSync(modules, join(app, 'node_modules'))
  const { status, stdout } = spawnSync(process.execPath, ['--test', 'heed.test.ts'], { cwd: app, encoding: 'utf8', env: { ...process.env, NODE_TEST_CONTEXT: undefined } })
  assert.equal(status, 0, stdout)
  const lines = serving(t, app, 'start')
  const { url } = JSON.parse(String((await lines.next()).value)) as { url: string }
  assert.deepEqual(heed(app, 'send', 'trip', 'How is it in Bern?', '--wait', 'answer', '--url', url), {
    status: 0, stdout: 'It is 14 degrees in Bern. Edit model.ts to ask a real model.\n', stderr: '',
  })
  assert.ok(existsSync(join(app, 'heed.db')))
})

test('heed dev of the package reloads a change', async (t) => {
  const folder = folderOf(t)
  symlinkSync(modules, join(folder, 'node_modules'))
  const code = (text: string) => `import { Agent, Heed } from 'heed'
import { LibSQLStore } from 'heed/libsql'
import { scriptedModel } from 'heed/testing'
const guide = new Agent({ id: 'guide', model: scriptedModel(['${text}'], { loop: true }) })
export const heed = new Heed({ agents: { guide }, storage: new LibSQLStore({ url: 'file:./heed.db' }) })
`
  writeFileSync(join(folder, 'heed.ts'), code('One.'))
  const lines = serving(t, folder, 'dev')
  const { url } = JSON.parse(String((await lines.next()).value)) as { url: string }
  const ask = () => heed(folder, 'send', 'trip', 'Who is this?', '--wait', 'answer', '--url', url)
  assert.deepEqual(ask(), { status: 0, stdout: 'One.\n', stderr: '' })
  writeFileSync(join(folder, 'heed.ts'), code('Two.'))
  appendFileSync(join(folder, 'heed.ts'), '\n')
  assert.match(String((await lines.next()).value), /"type":"reloaded"/)
  assert.deepEqual(ask(), { status: 0, stdout: 'Two.\n', stderr: '' })
})

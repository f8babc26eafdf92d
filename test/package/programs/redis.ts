import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { Agent, Heed, silentLogger } from 'heed'
import { LibSQLStore } from 'heed/libsql'
import { RedisBus } from 'heed/redis'
import { scriptedModel } from 'heed/testing'
import { newFile, newFolder } from './parts/folder.ts'
import { until } from './parts/until.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

test('two processes on one file are connected by Redis: one aborts the run of the other', async (context) => {
  const port = await freePort()
  const redis = spawn('redis-server', ['--port', String(port), '--save', '', '--dir', newFolder()], { stdio: ['ignore', 'pipe', 'inherit'] })
  const started = await Promise.race([once(redis.stdout, 'data').then(() => true), once(redis, 'error').then(() => false)])
  if (!started) return context.skip('redis-server is not installed')
  redis.stdout.resume()
  const url = newFile()
  const open = () => {
    const guide = new Agent({ id: 'guide', model: scriptedModel([{ text: ['On', ' and on'], hang: true }], { loop: true }) })
    const bus = new RedisBus({ url: `redis://127.0.0.1:${port}` })
    return { guide, heed: new Heed({ agents: { guide }, storage: new LibSQLStore({ url }), bus, logger: silentLogger }) }
  }
  const [one, other] = [open(), open()]
  try {
    const { runId } = one.guide.sendMessage('Hi.', thread)
    await until(async () => (await other.guide.activeRun(thread))?.runId, runId)
    await until(async () => other.guide.abortRun(thread).then(({ aborted }) => aborted, () => false), true)
  } finally {
    await Promise.all([one.heed.close(), other.heed.close()])
    redis.kill('SIGKILL')
  }
})

test('a url that is none is refused without being repeated', () => {
  assert.throws(() => new RedisBus({ url: 'http://:secret@localhost' }), (error: Error) => !error.message.includes('secret'))
})

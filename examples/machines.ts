// Machines: processes that share a database are connected by Redis, so that each can steer and watch the runs of the others.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, Heed, type ModelConfig } from 'heed'
import { LibSQLStore } from 'heed/libsql'
import { RedisBus } from 'heed/redis'
import { scriptedModel } from 'heed/testing'

export async function main(given?: ModelConfig, redis = process.env.REDIS_URL ?? 'redis://localhost:6379') {
  const folder = mkdtempSync(join(tmpdir(), 'heed-'))
  const gate = Promise.withResolvers<void>()
  // The first answer stops in its middle, until the other process has sent its message.
  const model = given ?? scriptedModel([{ text: ['Take the train', ' at nine. '], gate: { parts: 1, until: gate.promise } }, 'Or by bike, along the river.'])

  // Each of these would be a process on a machine of its own, and the storage a database server.
  const open = () => {
    const guide = new Agent({ id: 'guide', instructions: 'Plan journeys.', model })
    const storage = new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
    return { guide, heed: new Heed({ agents: { guide }, storage, bus: new RedisBus({ url: redis }) }) }
  }
  const [web, worker] = [open(), open()]
  const thread = { resourceId: 'user-7', threadId: 'trip' }

  const subscription = await web.guide.subscribeToThread(thread)
  await worker.guide.sendMessage('How do I get to Bern?', thread).stored
  const { stored, outcome } = web.guide.sendMessage('Is there another way?', thread)
  await stored
  gate.resolve()

  let seen = ''
  for await (const chunk of subscription.stream) {
    if (chunk.type === 'text-delta') seen += chunk.payload.text
    if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
    if (chunk.type === 'finish') break
  }
  const { action } = await outcome
  await Promise.all([web.heed.close(), worker.heed.close()])
  rmSync(folder, { recursive: true })
  return { seen, outcome: action }
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))

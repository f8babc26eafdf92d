import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { createClient } from '@libsql/client'
import { Agent, Heed, silentLogger } from 'heed'
import { LibSQLStore, LibSQLVector } from 'heed/libsql'
import { scriptedModel } from 'heed/testing'
import { newFile } from './parts/folder.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const memory = { thread: thread.threadId, resource: thread.resourceId }

async function twoTurns(storage: () => LibSQLStore): Promise<void> {
  for (const [said, answer] of [['First.', 'One.'], ['Second.', 'Two.']] as const) {
    const model = scriptedModel([answer])
    const agent = new Agent({ id: 'guide', model })
    const heed = new Heed({ agents: { agent }, storage: storage(), logger: silentLogger })
    await agent.generate(said, { memory })
    if (said === 'Second.') assert.match(JSON.stringify(model.calls[0]?.prompt), /First\..*One\..*Second\./)
    await heed.close()
  }
}

test('a thread in a file goes on after it was closed and opened', async () => {
  const url = newFile()
  await twoTurns(() => new LibSQLStore({ url }))
})

test('a thread goes on through @libsql/client', async () => {
  const url = newFile()
  await twoTurns(() => new LibSQLStore({ url, client: createClient({ url }) }))
})

test('two processes on one file: one watches the run of the other', async () => {
  const url = newFile()
  const program = join(import.meta.dirname, 'parts', 'second-process.ts')
  const child = spawn(process.execPath, [program, url], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  assert.equal((await lines.next()).value, 'watching')
  const guide = new Agent({ id: 'guide', model: scriptedModel(['Seen from afar.']) })
  const heed = new Heed({ agents: { guide }, storage: new LibSQLStore({ url }), logger: silentLogger })
  await guide.sendMessage('Hi.', thread).outcome
  assert.equal((await lines.next()).value, 'Seen from afar.')
  assert.deepEqual(await exit, [0, null])
  await heed.close()
})

test('vectors are kept and searched in a thread of their own', async () => {
  const vectors = new LibSQLVector({ url: newFile() })
  await vectors.createIndex({ indexName: 'notes', dimension: 2 })
  await vectors.upsert({ indexName: 'notes', vectors: [[1, 0], [0, 1]], ids: ['a', 'b'] })
  const [first] = await vectors.query({ indexName: 'notes', queryVector: [0.9, 0.1], topK: 1 })
  assert.equal(first?.id, 'a')
  await vectors.close()
})

test('a file is backed up while it is used', async () => {
  const url = newFile()
  const storage = new LibSQLStore({ url })
  const agent = new Agent({ id: 'guide', model: scriptedModel(['One.']) })
  const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
  await agent.generate('First.', { memory })
  const copy = newFile()
  await storage.backup(copy.slice('file:'.length))
  await heed.close()
  const again = new Agent({ id: 'guide', model: scriptedModel([]) })
  const other = new Heed({ agents: { again }, storage: new LibSQLStore({ url: copy }), logger: silentLogger })
  assert.equal((await (await again.getMemory()).recall({ threadId: thread.threadId })).messages.length, 2)
  await other.close()
})

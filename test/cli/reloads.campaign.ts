import { expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import type { Chunk } from '../../src/message/chunk.ts'
import { HeedProcess } from './heed-process.ts'
import { imports, project } from './project.ts'

const edits = Number(process.env.HEED_EDITS ?? 8)

const code = (version: number) => `${imports}
const look = createTool({ id: 'look', description: 'Looks.', idempotent: true, execute: () => new Promise((resolve) => setTimeout(() => resolve({}), 20)) })
const model = scriptedModel(({ prompt }) => prompt.at(-1)?.role === 'tool' ? { text: ['Answer', ' of ', 'version ${version}.'] } : { toolCalls: [{ toolName: 'look', input: {} }] }, { pace: { deltaMs: 5 } })
const guide = new Agent({ id: 'guide', tools: { look }, model })
export const heed = new Heed({ agents: { guide }, storage: new LibSQLStore({ url: 'file:./heed.db' }) })
`

/** Sends messages one after the other and reads their thread, while the code is edited. */
it(`[C4.3] ${edits} edits while runs stream: each message is answered once, and the stream has no gap`, async () => {
  const { folder, write } = project({ 'heed.ts': code(0) })
  const dev = new HeedProcess(['dev', '--json', '--port', '0'], { cwd: folder })
  onTestFinished(async () => {
    dev.child.kill('SIGTERM')
    await dev.ended
  })
  await expect.poll(() => dev.output).toContain('"ready"')
  const { url } = JSON.parse(dev.output.split('\n')[0]!) as { url: string }
  const agent = new HeedClient({ baseUrl: url, retries: 20 }).getAgent('guide')
  const thread = { threadId: 'trip', resourceId: 'user-7' }
  const subscription = await agent.subscribeToThread(thread)
  const chunks: Chunk[] = []
  const read = (async () => {
    for await (const chunk of subscription.chunks({ delayMs: 20 })) chunks.push(chunk)
  })()

  let isEditing = true
  const sent: string[] = []
  const send = (async () => {
    while (isEditing) {
      const id = `m-${sent.length}`
      await agent.queueMessage({ message: { id, contents: `Question ${id}` }, ...thread, wait: 'outcome' })
      sent.push(id)
      // Runs take longer than sends: without a bound, the queue would outlast the edits.
      await expect.poll(async () => (await agent.listQueued(thread)).length).toBeLessThan(5)
    }
  })()
  for (let version = 1; version <= edits; version++) {
    const before = dev.output.split('"reloaded"').length
    write('heed.ts', code(version))
    await expect.poll(() => dev.output.split('"reloaded"').length).toBeGreaterThan(before)
  }
  isEditing = false
  await send
  await expect.poll(async () => (await agent.listQueued(thread)).length).toBe(0)
  const explain = (signalId: string) => agent.explain({ ...thread, signalId })
  await expect.poll(async () => (await explain(sent.at(-1)!)).run?.status).toBe('finished')
  const runs: Array<string | undefined> = []
  for (const signalId of sent) {
    const { state, run, runId } = await explain(signalId)
    expect({ signalId, state, status: run?.status }).toEqual({ signalId, state: 'consumed', status: 'finished' })
    runs.push(runId)
  }
  // Each was queued, so each has a run of its own.
  expect(new Set(runs).size).toBe(sent.length)
  await agent.sendMessage({ message: 'Last.', ...thread })
  // As chunks, or, for a reader that connects again after the answer, in a snapshot.
  const deltas = () => chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.payload.text : '')).join('')
  const snapshots = () => JSON.stringify(chunks.filter(({ type }) => type === 'data-thread-snapshot'))
  await expect.poll(() => `${deltas()} ${snapshots()}`).toContain(`version ${edits}.`)
  await expect.poll(() => chunks.filter(({ type }) => type === 'finish').length).toBeGreaterThan(0)
  subscription.unsubscribe()
  await read
  const cursors = chunks.flatMap(({ cursor }) => cursor ?? [])
  expect(new Set(cursors).size).toBe(cursors.length)
  // A request that reaches the old process while it closes is answered with 503 and repeated: it is logged, and nothing else is.
  expect(dev.errors.split('\n').filter((line) => line !== '' && !line.includes('"code":"closed"'))).toEqual([])
}, 1_200_000)

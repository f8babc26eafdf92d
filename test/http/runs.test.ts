import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, Heed, silentLogger, type Chunk } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { gate } from '../thread/said.ts'
import { served, thread } from './serving.ts'

async function collect(chunks: AsyncIterable<Chunk>): Promise<string[]> {
  const seen: string[] = []
  for await (const chunk of chunks) seen.push(chunk.type)
  return seen
}

describe('runs over HTTP', () => {
  it('[H1.4] one run is watched from its start or from a chunk on, and to its end only', async () => {
    const hold = gate()
    const model = scriptedModel(({ index }) => (index === 0 ? { text: ['One ', 'two'], gate: hold.promise } : 'Next.'))
    const { client } = await served({ guide: new Agent({ id: 'guide', model }) })
    const remote = client.getAgent('guide')
    const { outcome } = await remote.sendMessage({ message: 'Go.', ...thread, wait: 'outcome' })
    const runId = outcome?.runId ?? ''
    await remote.queueMessage({ message: 'And then?', ...thread })
    expect((await remote.listActiveThreads()).map(({ id, status }) => [id, status])).toEqual([['thread-1', 'running']])
    const watched = await Promise.all([remote.observe({ runId }), remote.observe({ runId, offset: 2 })])
    hold.open()
    const [whole = [], rest = []] = await Promise.all(watched.map(collect))
    expect([whole[0], whole.at(-1), whole.filter((type) => type === 'finish').length]).toEqual(['start', 'finish', 1])
    expect(rest).toEqual(whole.slice(2))
    await expect.poll(() => remote.listActiveThreads()).toEqual([])
    await expect(remote.observe({ runId })).rejects.toMatchObject({ code: 'no_active_run', details: { status: 409 } })
  })

  it('[H1.4] answers for a run of another resource as for an unknown one', async () => {
    const auth = apiKeys({ 'a-long-random-key-1': { id: 'one', resources: ['user-1'] }, 'a-long-random-key-2': { id: 'two', resources: ['user-2'] } })
    const { ask } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([{ text: ['I ', 'wait'], hang: { parts: 1 } }]) }) }, { auth })
    const as = (name: 1 | 2) => ({ authorization: `Bearer a-long-random-key-${name}` })
    const sent = (await (await ask('/agents/guide/send-message?wait=outcome', { json: { message: 'Go.', ...thread }, headers: as(1) })).json()) as { outcome: { runId: string } }
    for (const path of ['observe', 'recover']) {
      const told = async (runId: string) => {
        const response = await ask(`/agents/guide/${path}`, { json: { runId }, headers: as(2) })
        return [response.status, (await response.text()).replaceAll(runId, 'run')]
      }
      expect(await told(sent.outcome.runId)).toEqual(await told('nothing'))
    }
    await ask('/agents/guide/threads/abort', { json: thread, headers: as(1) })
  })

  it('[H1.4] a run that was given up is listed, and taken up again', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const storage = () => new LibSQLStore({ url: `file:${join(folder, 'heed.db')}` })
    const model = scriptedModel(() => ({ text: 'Never', hang: true }))
    const agent = new Agent({ id: 'guide', model })
    const heed = new Heed({ agents: { agent }, storage: storage(), logger: silentLogger })
    for (const threadId of ['thread-1', 'thread-2']) await agent.sendMessage('Go.', { ...thread, threadId }).outcome
    await expect.poll(() => model.callCount).toBe(2)
    await heed.close()
    // As ten processes leave it that died with it.
    const file = new DatabaseSync(join(folder, 'heed.db'), { timeout: 60_000 })
    file.exec('UPDATE heed_runs SET attempts = 10')
    file.close()
    const { client } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['At last.'], { loop: true }) }) }, { storage: storage() })
    const remote = client.getAgent('guide')
    await expect.poll(async () => (await remote.listParkedRuns()).total).toBe(2)
    const { runs } = await remote.listParkedRuns({ threadId: 'thread-1', resourceId: 'user-1' })
    expect(runs).toMatchObject([{ threadId: 'thread-1', status: 'parked', error: { code: 'run_parked' } }])
    const runId = runs[0]?.runId ?? ''
    await expect(remote.retryParked({ ...thread, resourceId: 'user-2' })).rejects.toMatchObject({ code: 'thread_forbidden' })
    expect((await collect(await remote.recover({ runId }))).at(-1)).toBe('finish')
    expect(await remote.retryParked({ ...thread, threadId: 'thread-2' })).toMatchObject({ accepted: true })
    await expect.poll(async () => [(await remote.listParkedRuns()).total, await remote.listActiveThreads()]).toEqual([0, []])
    await expect(remote.retryParked({ ...thread, runId })).rejects.toMatchObject({ code: 'run_not_parked' })
    await expect(remote.recover({ runId })).rejects.toMatchObject({ code: 'no_active_run' })
  })
})

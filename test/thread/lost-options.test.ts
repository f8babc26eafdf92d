import { readdirSync, readFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, RequestContext } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from './places.ts'
import { idle, soon } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const memory = { thread: thread.threadId, resource: thread.resourceId }
const look = createTool({ id: 'look', execute: () => 'looked' })
const requestContextSchema = z.object({ plan: z.string() })

function guide(hang: boolean, seen: unknown[] = []) {
  const model = scriptedModel([{ text: 'Well.', hang }], { loop: true })
  const agent = new Agent({
    id: 'guide',
    model,
    requestContextSchema,
    instructions: ({ requestContext }) => {
      seen.push(requestContext.all)
      return 'Guide.'
    },
  })
  return { agent, model, seen }
}

const context = () => new RequestContext<Record<string, unknown>>({ plan: 'gold', locale: ['de', 'fr'], handle: () => 's3cret-value' })
const given = () => ({ requestContext: context(), tools: { look }, onFinish: () => {}, maxSteps: 3 })
const lost = ['tools', 'onFinish', 'requestContext.handle']

describe.each(sharedPlaceKinds())('options of a run whose process ended, $name', ({ make }) => {
  it.each(['signal', 'call', 'queued signal'] as const)('[R10.1] are listed in lost, and the JSON part of the request context is restored: of a %s', async (what) => {
    const place = make()
    const before = guide(true)
    const first = openHeed({ agent: before.agent }, place.store())
    if (what === 'call') await before.agent.stream('Go.', { memory, ...given() })
    else await before.agent.sendMessage({ contents: 'Go.', id: 's' }, { ...thread, ifIdle: { streamOptions: given() } }).outcome
    if (what === 'queued signal') {
      await before.agent.queueMessage({ contents: 'Then.', id: 'q' }, { ...thread, ifIdle: { streamOptions: given() } }).stored
    }
    await soon(() => before.model.callCount).toBe(1)
    await first.close()

    const logged: unknown[] = []
    const after = guide(false)
    const say = (message: string, about?: unknown) => void logged.push([message, about])
    await openHeed({ agent: after.agent }, place.store(), { logger: { debug: () => {}, info: () => {}, warn: say, error: say } }).start()
    await idle(after.agent, thread)
    const runs = await after.agent.threads().store.listRuns({ threadId: thread.threadId })
    expect(runs.map((run) => [run.status, run.lost])).toEqual(runs.map(() => ['finished', lost]))
    expect(runs).toHaveLength(what === 'queued signal' ? 2 : 1)
    if (what !== 'call') expect(await after.agent.explain({ ...thread, signalId: 's' })).toMatchObject({ run: { lost } })
    expect(after.seen).toEqual(runs.map(() => ({ plan: 'gold', locale: ['de', 'fr'] })))
    expect(logged).toHaveLength(runs.length)
    expect(logged[0]).toMatchObject([expect.stringContaining('without options'), { lost }])
  })

  it('are not lost while the process runs', async () => {
    const { agent, seen } = guide(false)
    openHeed({ agent }, make().store())
    await agent.generate('Go.', { memory, ...given() })
    expect(seen).toMatchObject([{ plan: 'gold', handle: expect.any(Function) }])
    expect((await agent.threads().store.listRuns({ threadId: thread.threadId }))[0]?.lost).toBeUndefined()
  })
})

describe('a request context', () => {
  const folder = mkdtempSync(join(tmpdir(), 'heed-context-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  it('[R10.1] stores its JSON part and nothing of its functions', async () => {
    const { agent } = guide(false)
    const heed = openHeed({ agent }, new LibSQLStore({ url: `file:${join(folder, 'a.db')}` }))
    await agent.generate('Go.', { memory, ...given() })
    await agent.sendMessage('And.', { ...thread, ifIdle: { streamOptions: given() } }).stored
    await idle(agent, thread)
    await heed.close()
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const bytes = files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1')).join('')
    expect(bytes).toContain('"plan":"gold","locale":["de","fr"]')
    expect(bytes).not.toContain('s3cret')
  })
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed } from '../thread/places.ts'
import { idle, userTexts } from '../thread/said.ts'
import { killed, runChild, said } from './child.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-lanes-'))
afterAll(() => rmSync(folder, { recursive: true }))
const thread = { threadId: 't', resourceId: 'u' }

describe('a process that is killed between acceptance and delivery of states', () => {
  it('[L1.7] leaves lane and history in agreement, and the states are delivered in order', async () => {
    const url = `file:${join(folder, 'lanes.db')}`
    const child = runChild(`
      const model = scriptedModel([{ text: ['a', 'b'], gate: { parts: 2, until: new Promise(() => {}) } }])
      const agent = new Agent({ id: 'a', model })
      new Heed({ agents: { agent }, storage: new LibSQLStore({ url: ${JSON.stringify(url)} }), logger: silentLogger })
      const thread = ${JSON.stringify(thread)}
      await agent.sendMessage('Go.', thread).outcome
      const state = (cacheKey, mode) => agent.sendStateSignal({ id: 'editor', cacheKey, mode, contents: cacheKey, value: cacheKey }, thread)
      for (const [key, mode] of [['k1', 'snapshot'], ['k2', 'delta'], ['k3', 'delta']]) await (await state(key, mode)).stored
      process.send('accepted')
      await new Promise(() => {})`)
    expect(await said(child)).toBe('accepted')
    await killed(child)

    const model = scriptedModel(() => 'seen')
    const agent = new Agent({ id: 'a', model })
    // As much later as it takes until the lease of the dead process has expired.
    const clock = virtualClock(Date.now() + 60_000)
    const heed = openHeed({ agent }, new LibSQLStore({ url, clock }), { clock })
    const waiting = await agent.getLane({ ...thread, id: 'editor' })
    expect(waiting).toMatchObject({ version: 3, cacheKey: 'k3', value: 'k3', snapshot: { version: 1 } })
    await heed.start()
    await expect.poll(() => model.callCount).toBeGreaterThan(0)
    await idle(agent, thread)
    const shown = userTexts(model.calls.at(-1)).filter((text) => text.startsWith('<state>'))
    expect(shown).toEqual(['<state>k1</state>', '<state>k2</state>', '<state>k3</state>'])
    const after = await agent.getLane({ ...thread, id: 'editor' })
    expect([after?.snapshot, ...(after?.deltas ?? [])].map((signal) => [signal?.version, signal?.value, signal?.waiting])).toEqual([[1, 'k1', false], [2, 'k2', false], [3, 'k3', false]])
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.filter(({ type }) => type === 'state')).toHaveLength(3)
    expect(await agent.sendStateSignal({ id: 'editor', cacheKey: 'k3', mode: 'delta', contents: 'k3' }, thread)).toMatchObject({ skipped: true })
  })
})

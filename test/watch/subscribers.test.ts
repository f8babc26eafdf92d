import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Chunk } from '../../src/index.ts'
import { collect, idle, soon } from '../thread/said.ts'
import { call, code, message, target, watching } from './watching.ts'

const folder = mkdtempSync(join(tmpdir(), 'heed-watch-chunks-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const input = { description: 'the code', expected_channels: ['sms'], result_schema: code }

function events(chunks: readonly Chunk[]): unknown[] {
  return chunks.flatMap((chunk) => (chunk.type === 'data-watch' && 'data' in chunk ? [chunk.data] : []))
}

describe('subscribers of a thread', () => {
  it('[V1.26] that ask for it receive what happens to its watches, without anything of a message and without a cursor', async () => {
    const { agent, adapter, model } = watching({
      script: [call('await_signal', input), 'I wait.', 'Noted.'],
      judge: ({ index }) => (index === 0 ? 'No.' : call('complete_task', { result: '482913' })),
    })
    const [asked, other] = [await agent.subscribeToThread({ ...target, watches: true }), await agent.subscribeToThread(target)]
    const [mine, plain] = [collect(asked), collect(other)]
    await agent.sendMessage('Log in.', target).outcome
    await soon(() => events(mine.chunks).length).toBe(1)
    await adapter.deliver(message('1', 'CANARY lunch?'), message('2', 'CANARY code 482913'))
    await soon(() => events(mine.chunks).length).toBe(4)
    await soon(() => model.callCount).toBe(3)
    await idle(agent, target)
    const { watches: [watch] } = await agent.listWatches(target)
    const about = { watchId: watch!.id }
    const [first, second] = (await agent.getWatch({ id: watch!.id }))!.candidates
    expect(events(mine.chunks)).toEqual([
      { event: 'registered', ...about, mode: 'once', expiresAt: watch!.expiresAt.toISOString() },
      { event: 'judged', ...about, inboundId: first!.inboundId, verdict: 'rejected' },
      { event: 'judged', ...about, inboundId: second!.inboundId, verdict: 'matched' },
      { event: 'ended', ...about, reason: 'matched' },
    ])
    await soon(() => plain.chunks.length).toBe(mine.chunks.length - 4)
    expect(mine.chunks.filter(({ type }) => type !== 'data-watch')).toEqual(plain.chunks)
    expect(mine.chunks.filter(({ type }) => type === 'data-watch').every(({ cursor }) => cursor === undefined)).toBe(true)
    expect(JSON.stringify(mine.chunks)).not.toContain('CANARY')
    asked.unsubscribe()
    other.unsubscribe()
    await Promise.all([mine.done, plain.done])
  })

  it('[V1.43] [V1.26] receive the end of a watch whose signal the thread can not have, and getWatch() says why it has none', async () => {
    const { agent, adapter, model } = watching({
      script: () => 'Noted.', judge: () => call('report_signal', { result: '482913' }),
    })
    await agent.awaitSignal({ ...input, mode: 'continuous' }, { ...target, id: 'w' })
    const memory = await agent.getMemory()
    for (const id of ['watch:w', 'watch-hit:1:w'])
      await memory.saveMessages({ messages: [{ id, role: 'user', content: { format: 2, parts: [{ type: 'text', text: 'Mine.' }] }, createdAt: new Date(), ...target }] })
    const asked = await agent.subscribeToThread({ ...target, watches: true })
    const mine = collect(asked)
    await adapter.deliver(message('1', 'Your code is 482913.'))
    const undelivered = async () => (await agent.getWatch({ id: 'w' }))?.undelivered
    const failed = { state: 'failed', attempts: 1, error: 'id_taken' }
    await soon(undelivered).toMatchObject([{ ...failed, signalId: 'watch-hit:1:w', reason: 'hit' }])
    await adapter.deliver(message('2', 'Your code is 482913.'))
    await soon(() => model.callCount).toBe(1)
    await agent.cancelWatch({ id: 'w' })
    await soon(() => events(mine.chunks).at(-1)).toEqual({ event: 'ended', watchId: 'w', reason: 'cancelled' })
    expect(await undelivered()).toMatchObject([{ reason: 'hit' }, { ...failed, signalId: 'watch:w', reason: 'cancelled' }])
    expect(model.callCount).toBe(1)
    asked.unsubscribe()
    await mine.done
  })

  it('[V1.26] in another process receive it too, and those of another resource do not', async () => {
    const file = join(folder, 'two.db')
    const first = watching({ file, script: () => 'Noted.', judge: () => 'No.' })
    const second = watching({ file, script: () => 'Noted.', judge: () => 'No.', channel: ['sms', 'other'] })
    await first.heed.start()
    await second.heed.start()
    const subscription = await second.agent.subscribeToThread({ ...target, watches: true })
    const foreign = await first.agent.subscribeToThread({ threadId: target.threadId, resourceId: 'bob', watches: true }).catch(() => undefined)
    const [mine, theirs] = [collect(subscription), foreign && collect(foreign)]
    const { id } = await first.agent.awaitSignal({ ...input, mode: 'continuous' }, target)
    await soon(() => events(mine.chunks)).toMatchObject([{ event: 'registered', watchId: id }])
    await first.adapter.deliver(message('1', 'Hello.'))
    await soon(() => events(mine.chunks)).toMatchObject([{ event: 'registered' }, { event: 'judged', verdict: 'rejected' }])
    expect(events(theirs?.chunks ?? [])).toEqual([])
    subscription.unsubscribe()
    foreign?.unsubscribe()
    await Promise.all([mine.done, theirs?.done.catch(() => {})])
  })
})

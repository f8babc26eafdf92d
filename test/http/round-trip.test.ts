import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Chunk } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

async function collect(chunks: AsyncIterable<Chunk>, until: (chunk: Chunk) => boolean): Promise<Chunk[]> {
  const seen: Chunk[] = []
  for await (const chunk of chunks) {
    seen.push(chunk)
    if (until(chunk)) break
  }
  return seen
}

const types = (chunks: readonly Chunk[]) => chunks.map(({ type }) => type)
const finished = ({ type }: Chunk) => type === 'finish'

describe('the server and the client', () => {
  it('sends a message and streams what follows', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['Hello there.']) })
    const { client } = await served({ guide: agent })
    const remote = client.getAgent('guide')
    const subscription = await remote.subscribeToThread(thread)
    const answer = await remote.sendMessage({ message: 'Hi', ...thread, wait: 'outcome' })
    expect(answer).toMatchObject({ accepted: true, outcome: { action: 'woke', runId: answer.runId, step: 0 }, signal: { contents: 'Hi' } })
    const chunks = await collect(subscription.chunks(), finished)
    expect(types(chunks).slice(0, 3)).toEqual(['start', 'data-user-message', 'step-start'])
    expect(chunks.every(({ cursor }) => cursor !== undefined)).toBe(true)
    expect(subscription.cursor).toBe(chunks.at(-1)?.cursor)
    subscription.unsubscribe()
  })

  it('asks once, streamed and whole', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel(['One.', 'Two.']) })
    const { client } = await served({ guide: agent })
    const remote = client.getAgent('guide')
    expect(await remote.generate('?')).toMatchObject({ text: 'One.', finishReason: 'stop' })
    const chunks = await collect(await remote.stream('?'), () => false)
    expect(chunks.at(-1)?.type).toBe('finish')
  })

  it('approves a call from afar', async () => {
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'pay' }] }, 'Done.']), tools: { pay } })
    const { client } = await served({ guide: agent })
    const remote = client.getAgent('guide')
    const subscription = await remote.subscribeToThread(thread)
    await remote.sendMessage({ message: 'Pay.', ...thread })
    const chunks = subscription.chunks()
    const waiting: Chunk[] = []
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
      waiting.push(next.value)
      if (next.value.type === 'tool-call-approval') break
    }
    const { runs } = await remote.listSuspendedRuns(thread)
    expect(runs).toMatchObject([{ threadId: 'thread-1', toolCalls: [{ toolName: 'pay', requiresApproval: true }] }])
    const toolCallId = runs[0]?.toolCalls[0]?.toolCallId ?? ''
    expect(await remote.sendToolApproval({ ...thread, toolCallId, approved: true })).toMatchObject({ accepted: true, toolCallId })
    const rest: Chunk[] = []
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
      rest.push(next.value)
      if (finished(next.value)) break
    }
    expect(types(rest)).toContain('tool-result')
    subscription.unsubscribe()
  })

  it('lists, reorders and cancels pending signals, and explains them', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: ['I ', 'wait'], hang: { parts: 1 } }]) })
    const { client } = await served({ guide: agent })
    const remote = client.getAgent('guide')
    await remote.sendMessage({ message: 'Go.', ...thread, wait: 'outcome' })
    for (const id of ['a', 'b', 'c']) await remote.queueMessage({ message: { contents: id, id }, ...thread })
    expect((await remote.listQueued(thread)).map(({ id }) => id)).toEqual(['a', 'b', 'c'])
    expect(await remote.reorderQueued({ ...thread, signalIds: ['c', 'a', 'b'] })).toEqual(['c', 'a', 'b'])
    expect(await remote.cancelQueued({ ...thread, signalIds: ['a'] })).toEqual(['a'])
    expect(await remote.explain({ ...thread, signalId: 'b' })).toMatchObject({ state: 'pending', ahead: 1 })
    expect(await remote.activeRun(thread)).toMatchObject({ status: 'running' })
    expect(await remote.abortThread({ ...thread, clearPendingSignals: true })).toBe(true)
  })
})

import { describe, expect, it } from 'vitest'
import { emptyView, reduceChunk } from '../../src/client/view/thread-view.ts'
import { Agent, createTool, toUIMessages, type Chunk, type UIMessage } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

/** What both have: times and marks of steps are history's own. */
function plain(messages: readonly UIMessage[]): unknown[] {
  return messages.map(({ id, role, parts }) => ({ id, role, parts: parts.filter(({ type }) => type !== 'step-start') }))
}

async function viewed(chunks: AsyncIterable<Chunk>, until: (seen: Chunk[]) => boolean): Promise<Chunk[]> {
  const seen: Chunk[] = []
  for await (const chunk of chunks) {
    seen.push(chunk)
    if (until(seen)) break
  }
  return seen
}

const finishes = (count: number) => (seen: Chunk[]) => seen.filter(({ type }) => type === 'finish').length === count
const view = (chunks: readonly Chunk[]) => chunks.reduce(reduceChunk, emptyView)

describe('what a display makes of the chunks', () => {
  it('[U1.1] is what history says, with tools, signals, a steer and a second run', async () => {
    const running = Promise.withResolvers<void>()
    const steered = Promise.withResolvers<void>()
    const look = createTool({ id: 'look', execute: async () => (running.resolve(), await steered.promise, { seen: true }) })
    const fail = createTool({ id: 'fail', execute: async () => Promise.reject(new Error('no luck')) })
    const model = scriptedModel([
      { reasoning: 'Hm.', text: 'I look.', toolCalls: [{ toolName: 'look', input: {} }, { toolName: 'fail', input: {} }] }, 'Seen.', 'And more.',
    ])
    const agent = new Agent({ id: 'guide', model, tools: { look, fail } })
    const { client } = await served({ guide: agent })
    const remote = client.getAgent('guide')
    const subscription = await remote.subscribeToThread(thread)
    const reading = viewed(subscription.chunks(), finishes(2))
    await remote.sendMessage({ message: 'Go.', ...thread })
    await running.promise
    await remote.queueMessage({ message: 'More.', ...thread })
    await remote.sendSignal({ signal: { type: 'notification', contents: 'CI failed', attributes: { source: 'ci' } }, ...thread })
    steered.resolve()
    const shown = view(await reading)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(plain(shown.messages)).toEqual(plain(toUIMessages(messages)))
    expect(shown).toMatchObject({ status: 'idle', runId: null, approvals: [], error: null })
  })

  it('[U1.1] is the same when it begins with a snapshot in the middle', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', input: { sum: 3 } }] }, 'Paid.'])
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'ok' })
    const agent = new Agent({ id: 'guide', model, tools: { pay } })
    const { client } = await served({ guide: agent })
    const remote = client.getAgent('guide')
    const early = await remote.subscribeToThread(thread)
    const reading = viewed(early.chunks(), finishes(1))
    await remote.sendMessage({ message: 'Pay.', ...thread })
    await expect.poll(() => remote.activeRun(thread)).toMatchObject({ status: 'suspended' })
    const late = await remote.subscribeToThread({ ...thread, snapshot: true })
    const chunks = late.chunks()
    const first = (await chunks.next()).value as Chunk
    expect(view([first])).toMatchObject({ status: 'suspended', approvals: [{ toolName: 'pay', kind: 'approval', args: { sum: 3 } }] })
    const [waiting] = view([first]).approvals
    await remote.sendToolApproval({ ...thread, toolCallId: waiting?.toolCallId ?? '', approved: true })
    const rest = await viewed(chunks, finishes(1))
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(plain(view([first, ...rest]).messages)).toEqual(plain(toUIMessages(messages)))
    expect(plain(view(await reading).messages)).toEqual(plain(toUIMessages(messages)))
  })
})

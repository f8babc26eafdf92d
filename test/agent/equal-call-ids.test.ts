import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Chunk } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { idle, isType, readUntil } from '../thread/said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }
const memory = { thread: thread.threadId, resource: thread.resourceId }
const call = (toolName: string, amount: number) => ({ toolName, toolCallId: 'same', input: { amount } })

function shop(...calls: object[]) {
  const ran: number[] = []
  const model = scriptedModel([{ toolCalls: calls as Array<{ toolName: string }> }, 'Done.', 'And on.'])
  const execute = (input: unknown) => `ran ${ran.push((input as { amount: number }).amount) && (input as { amount: number }).amount}`
  const agent = new Agent({
    id: 'shop', model, tools: { pay: createTool({ id: 'pay', requireApproval: true, execute }), look: createTool({ id: 'look', execute }) },
  })
  return { agent, model, ran }
}

/** The calls and results of a prompt: `id → text`. */
function inPrompt({ model }: ReturnType<typeof shop>, index = 1): string[] {
  const parts = (model.calls[index]?.prompt ?? []).flatMap(({ content }): PromptPart[] => (typeof content === 'string' ? [] : content))
  return parts.flatMap((part) => {
    if (part.type === 'tool-call') return `${part.toolCallId}(${JSON.stringify(part.input)})`
    return part.type === 'tool-result' ? `${part.toolCallId} → ${JSON.stringify(part.output)}` : []
  })
}

type PromptPart = Exclude<LanguageModelV4Prompt[number]['content'], string>[number]

const idsOf = (chunks: readonly Chunk[], type: string) =>
  chunks.flatMap((chunk) => (chunk.type === type && 'payload' in chunk ? (chunk.payload as { toolCallId: string }).toolCallId : []))

describe.each(sharedPlaceKinds())('calls of one step with the same id, $name', ({ make }) => {
  it('[G1.16] are decided and answered separately', async () => {
    const at = shop(call('pay', 1), call('pay', 2), call('pay', 3))
    openHeed({ agent: at.agent }, make().store())
    const reader = (await at.agent.subscribeToThread(thread)).stream[Symbol.asyncIterator]()
    await at.agent.sendMessage('Buy.', thread).outcome
    const asked: Chunk[] = []
    while (asked.length < 3) asked.push(...(await readUntil(reader, isType('tool-call-approval'))).filter(isType('tool-call-approval')))
    const [first = '', second = '', third = ''] = idsOf(asked, 'tool-call-approval')
    expect(new Set([first, second, third]).size).toBe(3)
    expect(first).toBe('same')
    await at.agent.sendToolApproval({ ...thread, toolCallId: first, approved: true })
    await at.agent.sendToolApproval({ ...thread, toolCallId: second, approved: false, declineContext: { reason: 'No.' } })
    await at.agent.sendToolApproval({ ...thread, toolCallId: third, approved: true })
    const rest = await readUntil(reader, isType('finish'))
    expect([idsOf(rest, 'tool-result').toSorted(), idsOf(rest, 'tool-output-denied')]).toEqual([[first, third].toSorted(), [second]])
    expect(at.ran.toSorted()).toEqual([1, 3])
    expect(inPrompt(at)).toEqual([
      'same({"amount":1})', 'same({"amount":2})', 'same({"amount":3})',
      'same → {"type":"text","value":"ran 1"}', 'same → {"type":"execution-denied","reason":"No."}', 'same → {"type":"text","value":"ran 3"}',
    ])
    const { messages } = await (await at.agent.getMemory()).recall({ ...thread, perPage: false })
    const stored = messages.flatMap(({ content }) => content.parts.flatMap((part) => (part.type === 'tool-invocation' ? part.toolInvocation : [])))
    expect(stored.map(({ toolCallId, state, result }) => [toolCallId, state, result])).toEqual([
      [first, 'result', 'ran 1'], [second, 'output-denied', undefined], [third, 'result', 'ran 3'],
    ])
  })

  it('[G1.16] are answered in their order, also if a later one has its result first', async () => {
    const place = make()
    const at = shop(call('pay', 1), call('look', 2), call('pay', 3), call('look', 4))
    const heed = openHeed({ agent: at.agent }, place.store())
    const { suspended } = await at.agent.generate('Buy.', { memory })
    expect(at.ran).toEqual([2, 4])
    for (const { toolCallId } of suspended) await at.agent.sendToolApproval({ ...thread, toolCallId, approved: true })
    await idle(at.agent, thread)
    expect(inPrompt(at).slice(4)).toEqual([1, 2, 3, 4].map((amount) => `same → {"type":"text","value":"ran ${amount}"}`))
    await heed.close()
    const next = shop()
    openHeed({ agent: next.agent }, place.store())
    await next.agent.sendMessage('More.', thread).outcome
    await idle(next.agent, thread)
    expect(inPrompt(next, 0)).toEqual(inPrompt(at))
  })

  it('[G1.16] run once each, and keep the bytes of the prompt after a restart', async () => {
    const place = make()
    const at = shop(call('look', 1), call('look', 2))
    const heed = openHeed({ agent: at.agent }, place.store())
    const { toolResults } = await at.agent.generate('Look.', { memory })
    expect(toolResults.map(({ result }) => result)).toEqual(['ran 1', 'ran 2'])
    expect(at.ran).toEqual([1, 2])
    await heed.close()
    const next = shop()
    openHeed({ agent: next.agent }, place.store())
    await next.agent.sendMessage('More.', thread).outcome
    await idle(next.agent, thread)
    expect(inPrompt(next, 0)).toEqual(inPrompt(at))
    expect(inPrompt(at)).toHaveLength(4)
  })

  it('[G1.16] whose ids look like those that Heed generates stay separate', async () => {
    const at = shop(call('look', 1), { ...call('look', 2), toolCallId: 'same~2' }, call('look', 3), { ...call('look', 4), toolCallId: 'same~2' })
    openHeed({ agent: at.agent }, make().store())
    const { toolCalls, toolResults } = await at.agent.generate('Look.', { memory })
    expect(new Set(toolCalls.map(({ toolCallId }) => toolCallId)).size).toBe(4)
    expect(toolResults.map(({ result }) => result)).toEqual(['ran 1', 'ran 2', 'ran 3', 'ran 4'])
    expect(inPrompt(at).slice(0, 4)).toEqual(['same({"amount":1})', 'same~2({"amount":2})', 'same({"amount":3})', 'same~2({"amount":4})'])
  })
})

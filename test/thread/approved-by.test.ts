import { describe, expect, it } from 'vitest'
import { Agent, createTool } from '../../src/index.ts'
import { reduceChunk, emptyView } from '../../src/client/view/thread-view.ts'
import { toUIMessages } from '../../src/message/ui/to-ui.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { fileKind, openHeed } from './places.ts'

const place = fileKind()
const thread = { threadId: 't', resourceId: 'u' }

describe('[R6.11] after a decision, history says who decided what', () => {
  it.each([
    ['approved', { approved: true, by: 'ann' }, 'sent', { state: 'result', approval: { approved: true, by: 'ann' } }],
    ['approved without a name', { approved: true }, 'sent', { state: 'result', approval: { approved: true } }],
    ['approved, and the tool failed', { approved: true, by: 'ann' }, new Error('no'), { state: 'output-error', approval: { approved: true, by: 'ann' } }],
    ['declined', { approved: false, by: 'bob', declineContext: { reason: 'No.' } }, 'sent', { state: 'output-denied', approval: { approved: false, by: 'bob', reason: 'No.' } }],
  ])('%s', async (_, decision, result, expected) => {
    const send = createTool({
      id: 'send',
      requireApproval: true,
      execute: () => {
        if (result instanceof Error) throw result
        return result
      },
    })
    const free = createTool({ id: 'free', execute: () => 'done' })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'send', toolCallId: 'c1' }, { toolName: 'free', toolCallId: 'c2' }] }, 'Done.'])
    const agent = new Agent({ id: 'a', model, tools: { send, free } })
    openHeed({ agent }, place.make().store())
    const { stream } = await agent.subscribeToThread(thread)
    agent.sendMessage('Send it.', thread)
    let view = emptyView
    for await (const chunk of stream) {
      view = reduceChunk(view, chunk)
      if (chunk.type === 'tool-call-approval') await agent.sendToolApproval({ ...thread, ...decision })
      if (chunk.type === 'finish') break
    }
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    const invocations = messages.flatMap(({ content }) => content.parts).flatMap((part) => (part.type === 'tool-invocation' ? [part.toolInvocation] : []))
    expect(invocations[0]).toMatchObject(expected)
    expect(invocations[0]?.approval).toEqual(expected.approval)
    expect(invocations[1]).not.toHaveProperty('approval')
    const answer = (shown: typeof view.messages) => shown.filter(({ role }) => role === 'assistant').map(({ parts }) => parts)
    expect(answer(view.messages)).toEqual(answer(toUIMessages(messages)))
  })
})

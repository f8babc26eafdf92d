import { describe, expect, it } from 'vitest'
import { emptyView, reduceChunk } from '../../src/client/view/thread-view.ts'
import { Agent, createTool, toUIMessages, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { collect, idle, soon, texts, types } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const told = 'user: <system-reminder>Be short.</system-reminder>'

describe.each(placeKinds())('a model call that failed, $name', ({ make }) => {
  it.each([
    { name: 'the first of a run, tried again', before: 0, retry: true },
    { name: 'a later one, tried again', before: 1, retry: true },
    { name: 'a later one, by the next model', before: 1, retry: false },
  ])('[G2.40] the next model call reads what a processor sends then: $name', async ({ before, retry }) => {
    const rescue: Processor = {
      id: 'rescue',
      async processAPIError({ sendSignal }) {
        await sendSignal({ type: 'reactive', contents: 'Be short.' })
        return { retry }
      },
    }
    const look = createTool({ id: 'look', execute: () => 'seen' })
    const asks = Array.from({ length: before }, () => ({ toolCalls: [{ toolName: 'look' }] }))
    const failing = { error: { status: 400, message: 'too long' } }
    const model = scriptedModel([...asks, failing, ...(retry ? [{ text: 'Hm.', toolCalls: [{ toolName: 'look' }] }, 'Done.'] : [])])
    const next = scriptedModel([{ text: 'Hm.', toolCalls: [{ toolName: 'look' }] }])
    const agent = new Agent({ id: 'a', model: retry ? model : [{ model }, { model: next }], tools: { look }, inputProcessors: [rescue] })
    openHeed({ agent }, make().store())
    const seen = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage({ contents: 'Go.' }, { ...thread, ifIdle: { streamOptions: { maxSteps: retry ? 3 + before : 1 + before } } }).stored
    await idle(agent, thread)
    await soon(() => types(seen.chunks)).toContain('finish')
    const failed = model.calls[before]?.prompt ?? []
    const asked = (retry ? model.calls[before + 1] : next.calls[0])?.prompt ?? []
    expect(texts(asked)).toEqual([...texts(failed), told])
    // What follows begins with it.
    if (retry) expect(texts(model.calls[before + 2]?.prompt ?? []).slice(0, asked.length)).toEqual(texts(asked))
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages.map(({ role }) => role)).toEqual(['signal', ...(before > 0 ? ['assistant'] : []), 'signal', 'assistant'])
    const view = seen.chunks.reduce(reduceChunk, emptyView)
    expect(view.messages.map(({ id }) => id)).toEqual(toUIMessages(messages).map(({ id }) => id))
  })
})

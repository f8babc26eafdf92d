import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from './places.ts'
import { collect, gate, idle, isType, readUntil, soon, texts } from './said.ts'

const mine = { resourceId: 'user-1', threadId: 'thread-1' }
const theirs = { resourceId: 'user-2', threadId: 'thread-1' }
const memory = { thread: theirs.threadId, resource: theirs.resourceId }

/** A thread of user-1 with a run that waits for an approval, one message in the queue. */
async function suspendedThread(agent: Agent) {
  const receipt = agent.sendMessage({ contents: 'A secret.', id: 'secret' }, mine)
  await soon(async () => (await agent.activeRun(mine))?.status).toBe('suspended')
  await agent.queueMessage({ contents: 'Another secret.', id: 'queued' }, mine).stored
  await agent.sendStateSignal({ id: 'browser', cacheKey: 'k', contents: 'A secret page.' }, { ...mine, ifActive: { behavior: 'persist' } })
  return (await receipt.outcome).runId ?? ''
}

function keeper() {
  const tell = createTool({ id: 'tell', requireApproval: true, resumeSchema: z.object({ code: z.string() }), execute: () => 'told' })
  const model = scriptedModel((call) => (call.prompt.some(({ role }) => role === 'tool') ? 'Kept.' : { toolCalls: [{ toolName: 'tell', toolCallId: 'c1' }] }))
  return new Agent({ id: 'keeper', model, tools: { tell } }) as unknown as Agent
}

const forbidden = { code: 'thread_forbidden' }

type Attempt = (agent: Agent, runId: string) => unknown

const sends: Array<[string, Attempt]> = [
  ['sendMessage', (agent) => agent.sendMessage('x', theirs).stored],
  ['sendMessage with the run', (agent, runId) => agent.sendMessage('x', { ...theirs, runId }).stored],
  ['sendMessage by the run', (agent, runId) => agent.sendMessage('x', { resourceId: 'user-2', runId }).stored],
  ['sendMessage of a known id', (agent) => agent.sendMessage({ contents: 'x', id: 'secret' }, theirs).stored],
  ['sendMessage to interrupt', (agent) => agent.sendMessage('x', { ...theirs, ifActive: { behavior: 'interrupt' } }).stored],
  ['queueMessage', (agent) => agent.queueMessage('x', theirs).stored],
  ['sendSignal', (agent) => agent.sendSignal({ type: 'notification', contents: 'x' }, theirs).stored],
  ['sendSignal to keep', (agent) => agent.sendSignal({ type: 'notification', contents: 'x' }, { ...theirs, ifActive: { behavior: 'persist' } }).stored],
  ['generate', (agent) => agent.generate('x', { memory })],
  ['stream', (agent) => agent.stream('x', { memory })],
  ['subscribeToThread', (agent) => agent.subscribeToThread(theirs)],
  ['subscribeToThread with a cursor', (agent) => agent.subscribeToThread({ ...theirs, after: '1.1' })],
  ['subscribeToThread with a snapshot', (agent) => agent.subscribeToThread({ ...theirs, snapshot: true })],
  ['activeRun', (agent) => agent.activeRun(theirs)],
  ['listQueued', (agent) => agent.listQueued(theirs)],
  ['cancelQueued', (agent) => agent.cancelQueued({ ...theirs, signalIds: ['queued'] })],
  ['reorderQueued', (agent) => agent.reorderQueued({ ...theirs, signalIds: ['queued'] })],
  ['explain', (agent) => agent.explain({ ...theirs, signalId: 'secret' })],
  ['sendToolApproval', (agent) => agent.sendToolApproval({ ...theirs, toolCallId: 'c1', approved: true })],
  ['sendStreamResume', (agent, runId) => agent.sendStreamResume({ ...theirs, runId, toolCallId: 'c1', resumeData: {} })],
  ['sendStreamResume of the wrong data', (agent, runId) => agent.sendStreamResume({ ...theirs, runId, toolCallId: 'c1', resumeData: { bad: 1 } })],
  ['sendStateSignal', (agent) => agent.sendStateSignal({ id: 'browser', cacheKey: 'x', contents: 'x' }, theirs)],
  ['sendStateSignal of a known key', (agent) => agent.sendStateSignal({ id: 'browser', cacheKey: 'k', contents: 'x' }, theirs)],
  ['sendNotificationSignal', (agent) => agent.sendNotificationSignal({ source: 'a', kind: 'b', summary: 'c' }, theirs)],
  ['abortRun', (agent) => agent.abortRun(theirs)],
  ['abortRun of the run', (agent, runId) => agent.abortRun({ ...theirs, expectedRunId: runId })],
  ['retryParked', (agent) => agent.retryParked(theirs)],
  ['retryParked of the run', (agent, runId) => agent.retryParked({ ...theirs, runId })],
  ['getLane', (agent) => agent.getLane({ ...theirs, id: 'browser' })],
  ['listLanes', (agent) => agent.listLanes(theirs)],
  ['listLaneHistory', (agent) => agent.listLaneHistory({ ...theirs, id: 'browser' })],
  ['explainPrompt', (agent) => agent.explainPrompt('x', { memory })],
  ['recall', async (agent) => (await agent.getMemory()).recall(theirs)],
  ['getThreadById', async (agent) => (await agent.getMemory()).getThreadById(theirs)],
  ['createThread', async (agent) => (await agent.getMemory()).createThread(theirs)],
]

describe.each(sharedPlaceKinds())("another resource's thread, $name", ({ make }) => {
  it.each(sends)('[X1.3] is rejected by %s', async (_, attempt) => {
    const agent = keeper()
    const place = make()
    openHeed({ agent }, place.store())
    const runId = await suspendedThread(agent)
    const store = place.store()
    await store.open()
    const everything = async () => JSON.stringify([
      await store.getThread(mine), await store.listRows(mine, { limit: 100, context: true }), await store.listSignals(mine), await store.listRuns({ threadId: mine.threadId }),
    ])
    const before = await everything()
    await expect(Promise.resolve(attempt(agent, runId))).rejects.toMatchObject(forbidden)
    expect(await everything()).toBe(before)
    await store.close()
  })

  it('[X1.3] has no run that another resource can decide by its id', async () => {
    const agent = keeper()
    openHeed({ agent }, make().store())
    const runId = await suspendedThread(agent)
    const { resourceId } = theirs
    for (const attempt of [agent.approveToolCall({ runId, resourceId }), agent.declineToolCall({ runId, resourceId }), agent.resumeStream({}, { runId, resourceId }), agent.resumeStream({ code: 'x' }, { runId, resourceId })]) {
      await expect(attempt).rejects.toMatchObject({ code: 'run_not_suspended' })
    }
    expect(await agent.activeRun(mine)).toMatchObject({ status: 'suspended' })
  })

  it('[X1.3] is neither aborted nor listed', async () => {
    const agent = keeper()
    openHeed({ agent }, make().store())
    await suspendedThread(agent)
    expect(agent.abortThreadStream(theirs)).toBe(false)
    const watcher = await agent.subscribeToThread(mine)
    expect(() => agent.abortThreadStream(theirs)).toThrow(expect.objectContaining(forbidden))
    expect(await agent.activeRun(mine)).toMatchObject({ status: 'suspended' })
    expect((await agent.listSuspendedRuns({ resourceId: 'user-2' })).runs).toEqual([])
    expect((await agent.listSuspendedRuns({ resourceId: 'user-2', threadId: mine.threadId })).runs).toEqual([])
    expect(await agent.listActiveThreads({ resourceId: 'user-2' })).toEqual([])
    watcher.unsubscribe()
  })

  it('[X1.3] is not aborted while it runs, and its runId is not revealed', async () => {
    const agent = new Agent({ id: 'keeper', model: scriptedModel([{ text: 'Long', hang: true }]) })
    openHeed({ agent }, make().store())
    const { runId = '' } = await agent.sendMessage('Go.', mine).outcome
    expect(() => agent.abortThreadStream(theirs)).toThrow(expect.objectContaining(forbidden))
    const receipt = agent.sendMessage('x', theirs)
    expect(receipt.runId).not.toBe(runId)
    expect(await receipt.outcome).toMatchObject({ action: 'rejected', code: 'thread_forbidden' })
    expect(await agent.sendMessage('x', { resourceId: 'user-2', runId }).outcome).toMatchObject({ action: 'rejected', code: 'thread_forbidden' })
    expect(await agent.sendMessage('x', { threadId: 'thread-2', runId }).outcome).toMatchObject({ action: 'rejected', code: 'no_active_run' })
    expect(await agent.listQueued(mine)).toEqual([])
    expect(await agent.activeRun(mine)).toMatchObject({ runId, status: 'running' })
    expect(agent.abortThreadStream(mine)).toBe(true)
    await idle(agent, mine)
  })

  it('[X1.3] is not aborted before its run exists', async () => {
    const asked = gate()
    const ready = gate()
    const agent = new Agent({ id: 'keeper', model: scriptedModel(['Kept.']), instructions: async () => (asked.open(), await ready.promise, '') })
    openHeed({ agent }, make().store())
    agent.sendMessage('Go.', mine)
    await asked.promise
    expect(() => agent.abortThreadStream(theirs)).toThrow(expect.objectContaining(forbidden))
    ready.open()
    await idle(agent, mine)
    const { messages } = await (await agent.getMemory()).recall(mine)
    expect(messages.map(({ role }) => role)).toEqual(['signal', 'assistant'])
  })

  it('[X1.3] publishes nothing to a subscriber of another resource from before its creation', async () => {
    const agent = new Agent({ id: 'keeper', model: scriptedModel(['Kept.']) })
    openHeed({ agent }, make().store())
    const early = await agent.subscribeToThread(theirs)
    const reading = readUntil(early.stream, () => false)
    const trusted = await agent.subscribeToThread({ threadId: mine.threadId })
    const seen = collect(trusted)
    const refused = expect(reading).rejects.toMatchObject(forbidden)
    await agent.sendMessage('A secret.', mine).outcome
    await refused
    expect(early.activeRunId()).toBeNull()
    expect(() => early.abort()).toThrow(expect.objectContaining(forbidden))
    await soon(() => seen.chunks.at(-1)?.type).toBe('finish')
    early.unsubscribe()
  })

  it('[X1.3] publishes nothing to a subscriber of another resource from before its first persisted signal', async () => {
    const agent = new Agent({ id: 'keeper', model: scriptedModel([]) })
    openHeed({ agent }, make().store())
    const early = await agent.subscribeToThread(theirs)
    const refused = expect(readUntil(early.stream, () => false)).rejects.toMatchObject(forbidden)
    await agent.sendMessage('A secret.', { ...mine, ifIdle: { behavior: 'persist' } }).outcome
    await refused
  })

  it('[X1.3] publishes nothing to its former resource after it was deleted and created by another', async () => {
    const place = make()
    const agent = new Agent({ id: 'keeper', model: scriptedModel(['First.', 'Second.']) })
    openHeed({ agent }, place.store())
    const first = await agent.subscribeToThread(mine)
    const reader = first.stream[Symbol.asyncIterator]()
    agent.sendMessage('Mine.', mine)
    const seen = await readUntil(reader, isType('finish'))
    const store = place.store()
    await store.open()
    expect(await store.deleteThread(mine)).toBe(true)
    await store.close()

    const refused = expect(readUntil(reader, () => false)).rejects.toMatchObject(forbidden)
    agent.sendMessage('Theirs.', theirs)
    await refused
    await idle(agent, theirs)
    const second = await agent.subscribeToThread({ ...theirs, after: seen[0]?.cursor ?? '' })
    const [snapshot] = await readUntil(second.stream, () => true)
    expect(snapshot?.type).toBe('data-thread-snapshot')
    expect(JSON.stringify(snapshot)).not.toContain('Mine.')
    await expect(agent.subscribeToThread(mine)).rejects.toMatchObject(forbidden)
  })

  it('[X1.3] may have messages and signals with the same ids, which stay separate', async () => {
    const model = scriptedModel(['One.', 'Two.'])
    const agent = new Agent({ id: 'keeper', model })
    openHeed({ agent }, make().store())
    const other = { resourceId: 'user-2', threadId: 'thread-2' }
    const first = agent.sendMessage({ contents: 'Mine.', id: 'same' }, mine)
    expect((await first.outcome).duplicate).toBeUndefined()
    await idle(agent, mine)
    const second = agent.sendMessage({ contents: 'Theirs.', id: 'same' }, other)
    expect((await second.outcome).duplicate).toBeUndefined()
    await idle(agent, other)
    expect(texts(model.calls[1]?.prompt ?? [])).toEqual(['user: Theirs.'])
    expect((await agent.explain({ ...mine, signalId: 'same' }))?.runId).toBe(first.runId)
    expect((await agent.explain({ ...other, signalId: 'same' }))?.runId).toBe(second.runId)
  })
})

import { describe, expect, it, vi } from 'vitest'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { faulty } from './faulty-store.ts'
import { openHeed, sharedPlaceKinds, type Place } from './places.ts'
import { collect, gate, idle, soon, userTexts } from './said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const memory = { thread: 't', resource: 'u' }

/** A run of an agent that goes with its process and is never seen again. */
async function leaveUnfinished(place: Place): Promise<string> {
  const agent = new Agent({ id: 'old-name', model: scriptedModel([{ text: 'Half', hang: true }]) })
  const heed = openHeed({ agent }, place.store())
  const { runId } = await agent.sendMessage('Go.', thread).outcome
  await heed.close()
  return runId ?? ''
}

/** Deletes the thread, and leaves an unfinished run on a later one with its id. */
async function replace(place: Place): Promise<void> {
  const agent = new Agent({ id: 'new-name', model: scriptedModel([{ text: 'Half', hang: true }]) })
  const heed = openHeed({ agent }, place.store())
  await (await agent.getMemory()).deleteThread(thread)
  await agent.sendMessage('New.', thread).outcome
  await heed.close()
}

describe.each(sharedPlaceKinds())('a run whose agent no process has, $name', ({ make }) => {
  it('[R5.6] is ended by abortRun, subscribers receive the abort, and pending signals are processed', async () => {
    const place = make()
    const runId = await leaveUnfinished(place)
    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'new-name', model })
    openHeed({ agent }, place.store())
    const seen = collect(await agent.subscribeToThread(thread))
    expect(await agent.sendMessage('Waiting.', thread).outcome).toMatchObject({ action: 'queued' })
    expect(await agent.activeRun(thread)).toMatchObject({ runId, agentId: 'old-name' })
    expect(await agent.abortRun(thread)).toEqual({ aborted: true, runId })
    await idle(agent, thread)
    expect(userTexts(model.calls[0]).at(-1)).toBe('Waiting.')
    await soon(() => seen.chunks.map(({ type }) => type)).toEqual(expect.arrayContaining(['abort', 'start', 'finish']))
    expect(seen.chunks[0]).toMatchObject({ type: 'abort', runId })
    expect((await agent.generate('And now?', { memory })).text).toBe('Done.')
  })

  it('[R5.6] leaves a true result for each of its open calls when abortRun ends it', async () => {
    const place = make()
    const started = gate()
    const pay = createTool({ id: 'pay', execute: () => (started.open(), new Promise<string>(() => {})) })
    const sign = createTool({ id: 'sign', requireApproval: true, execute: () => 'signed' })
    const calls = ['pay', 'sign'].map((name) => ({ toolName: name, toolCallId: name, input: {} }))
    const old = new Agent({ id: 'old-name', model: scriptedModel([{ toolCalls: calls }]), tools: { pay, sign } })
    const heed = openHeed({ old }, place.store())
    const { runId } = await old.sendMessage('Go.', thread).outcome
    await started.promise
    await heed.close()

    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'new-name', model })
    openHeed({ agent }, place.store())
    const seen = collect(await agent.subscribeToThread(thread))
    expect(await agent.abortRun(thread)).toEqual({ aborted: true, runId })
    await soon(() => seen.chunks.map(({ type }) => type)).toEqual(expect.arrayContaining(['tool-error', 'tool-output-denied', 'abort']))
    await agent.generate('And now?', { memory })
    const results = model.calls[0]?.prompt.flatMap((message) => (message.role === 'tool' ? message.content : []))
    expect(results).toMatchObject([{ toolCallId: 'pay' }, { toolCallId: 'sign' }])
    expect(results?.map((result) => JSON.stringify(result))).toEqual([expect.stringContaining('It is not known whether it took effect'), expect.stringContaining('was not run')])
  })

  it('[R5.6] is ended together with its pending signals if clearPendingSignals is set', async () => {
    const place = make()
    const runId = await leaveUnfinished(place)
    const model = scriptedModel(() => 'Done.')
    const agent = new Agent({ id: 'new-name', model })
    openHeed({ agent }, place.store())
    await agent.queueMessage('Waiting.', thread).stored
    expect(await agent.abortRun({ ...thread, clearPendingSignals: true })).toEqual({ aborted: true, runId })
    await idle(agent, thread)
    expect(await agent.listQueued(thread)).toEqual([])
    expect(model.callCount).toBe(0)
  })

  it('[R8.4] [R11.2] is not ended where its thread is replaced before it is claimed: the run of the later thread goes on', async () => {
    const place = make()
    await leaveUnfinished(place)
    const { store, on } = faulty(place.store())
    const agent = new Agent({ id: 'new-name', model: scriptedModel(() => 'Done.') })
    const logger = { debug() {}, info() {}, warn() {}, error: vi.fn() }
    openHeed({ agent }, store, { logger })
    on('claim', ([, , agentIds]) => {
      if (agentIds !== undefined) return undefined
      on('claim')
      return replace(place)
    })
    expect(await agent.abortRun(thread)).toMatchObject({ aborted: false })
    await idle(agent, thread)
    expect(JSON.stringify(await (await agent.getMemory()).recall(thread))).toContain('Done.')
    expect(logger.error).not.toHaveBeenCalled()
  })

  it('[R5.6] rejects generate() behind it with run_abandoned and stores nothing of the call', async () => {
    const clock = virtualClock()
    const place = make({ clock })
    const runId = await leaveUnfinished(place)
    const agent = new Agent({ id: 'new-name', model: scriptedModel(() => 'Done.') })
    openHeed({ agent }, place.store(), { clock })
    const refused = expect(agent.generate('Hello?', { memory })).rejects.toMatchObject({ code: 'run_abandoned', retryable: true, details: { agentId: 'old-name', runId } })
    await soon(async () => (await agent.listQueued(thread)).length).toBe(1)
    const over = Promise.race([refused.then(() => true), soon(async () => (await clock.advance(5_000), (await agent.listQueued(thread)).length)).toBe(0)])
    await over
    await refused
    expect(await agent.listQueued(thread)).toEqual([])
  })
})

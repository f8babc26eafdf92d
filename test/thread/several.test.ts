import { describe, expect, it } from 'vitest'
import { Agent, createTool, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from './places.ts'
import { gate, idle, isType, readUntil, soon, userTexts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

describe.each(sharedPlaceKinds())('several agents, $name', ({ make }) => {
  it('share a thread: a send to one never enters the run of another', async () => {
    const hold = gate()
    const writerModel = scriptedModel((call) => (call.index === 0 ? { text: 'Writing.', gate: hold.promise } : 'Written.'))
    const criticModel = scriptedModel(['Hm.', 'Well.'])
    const writer = new Agent({ id: 'writer', model: writerModel })
    const critic = new Agent({ id: 'critic', model: criticModel })
    openHeed({ writer, critic }, make().store())
    const watcher = await writer.subscribeToThread(thread)

    const first = writer.sendMessage('Write.', thread)
    await first.outcome
    const remark = critic.sendMessage('Judge.', thread)
    expect(await remark.outcome).toEqual({ action: 'queued', runId: expect.any(String) })
    const hurry = critic.sendMessage('Judge now.', { ...thread, ifActive: { behavior: 'interrupt' } })
    expect(await hurry.outcome).toMatchObject({ action: 'queued' })
    const more = writer.sendMessage('Write more.', thread)
    await more.stored
    expect(await critic.activeRun(thread)).toMatchObject({ agentId: 'writer', status: 'running' })
    hold.open()

    let finished = 0
    const chunks = await readUntil(watcher.stream, (chunk) => chunk.type === 'finish' && ++finished === 3)
    expect(chunks.filter(isType('start')).map((chunk) => ('payload' in chunk && chunk.type === 'start' ? chunk.payload.id : ''))).toEqual(['writer', 'critic', 'critic'])
    expect(userTexts(writerModel.calls[1])).toEqual(['Write.', 'Write more.'])
    expect(userTexts(criticModel.calls[0])).toEqual(['Write.', 'Write more.', 'Judge.'])
    expect(userTexts(criticModel.calls[1])).toEqual(['Write.', 'Write more.', 'Judge.', 'Judge now.'])
    expect((await more.outcome).action).toBe('delivered')
  })

  it('run only where they are known', async () => {
    const place = make()
    const writer = new Agent({ id: 'writer', model: scriptedModel([{ text: 'Long', hang: true }]) })
    const critic = new Agent({ id: 'critic', model: scriptedModel(['Hm.']) })
    const first = openHeed({ writer, critic }, place.store())
    await writer.sendMessage('Write.', thread).outcome
    await critic.queueMessage('Judge.', thread).stored
    await first.close()

    const stranger = new Agent({ id: 'stranger', model: scriptedModel([]) })
    const second = openHeed({ stranger }, place.store())
    await second.start()
    expect(await second.tick()).toEqual({ threads: 0, notifications: 0, schedules: 0, watches: 0, scores: 0, pruned: 0 })
    await second.close()

    const model = scriptedModel(['Written.'])
    const judge = scriptedModel(['Judged.'])
    const third = openHeed({ writer: new Agent({ id: 'writer', model }), critic: new Agent({ id: 'critic', model: judge }) }, place.store())
    await third.start()
    await idle(third.getAgent('writer'), thread)
    expect([model.callCount, judge.callCount]).toEqual([1, 1])
  })

  it('pass an approval through another agent to the suspended one', async () => {
    const pay = createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' })
    const place = make()
    const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', toolCallId: 'c1' }] }, 'Paid.'])
    const buyer = new Agent({ id: 'buyer', model, tools: { pay } })
    const first = openHeed({ buyer }, place.store())
    await buyer.sendMessage('Buy.', thread).outcome
    await soon(async () => (await buyer.activeRun(thread))?.status).toBe('suspended')
    await first.close()

    // This process doesn't know the buyer: the decision is kept for one that does.
    const stranger = new Agent({ id: 'stranger', model: scriptedModel([]) })
    const errors: string[] = []
    const second = openHeed({ stranger }, place.store(), { logger: { ...silentLogger, error: (message) => errors.push(message) } })
    await stranger.sendToolApproval({ ...thread, approved: true })
    expect(await stranger.activeRun(thread)).toMatchObject({ agentId: 'buyer', status: 'running' })
    const [left] = await stranger.listActiveThreads()
    expect(left).toMatchObject({ id: 'thread-1', status: 'running' })
    expect(left?.owner).toBeUndefined()
    await second.close()
    expect(errors).toEqual([])

    const after = scriptedModel(['Paid.'])
    const third = openHeed({ buyer: new Agent({ id: 'buyer', model: after, tools: { pay } }) }, place.store())
    await third.start()
    await idle(third.getAgent('buyer'), thread)
    expect(after.callCount).toBe(1)
  })

  it('work for each other on child threads', async () => {
    const helperModel = scriptedModel(['Four.'])
    const helper = new Agent({ id: 'helper', model: helperModel })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'agent-helper', toolCallId: 'c1', input: { prompt: 'Two and two?' } }] }, 'It is four.'])
    const agent = new Agent({ id: 'asker', model, agents: { helper } })
    openHeed({ agent, helper }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    agent.sendMessage('Add.', thread)
    const chunks = await readUntil(watcher.stream, isType('finish'))
    const reported = chunks.filter(isType('tool-output')).map((chunk) => ('payload' in chunk ? (chunk.payload as { output: { type: string } }).output.type : ''))
    expect(reported).toEqual(expect.arrayContaining(['start', 'text-delta', 'finish']))
    const child = { resourceId: 'user-1', threadId: 'child:thread-1/c1' }
    const { messages } = await (await helper.getMemory()).recall(child)
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(await helper.activeRun(child)).toBeNull()
  })
})

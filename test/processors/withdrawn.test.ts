import { describe, expect, it } from 'vitest'
import { Agent, createTool, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds, type Place } from '../thread/places.ts'
import { collect, gate, idle, isType, readUntil, soon, types } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }

/** An agent that looks something up and then says what is forbidden, or receives it meanwhile; refused where `at` says. */
function guarded(at: 'output result' | 'output step' | 'mid-run input' | 'sub-agent', place: Place) {
  const check = (here: string, words: string, abort: (reason: string) => never) => (at === here && words.includes('FORBIDDEN') ? abort('no') : undefined)
  const guard: Processor = {
    id: 'guard',
    processInput: ({ messages, abort }) => check('mid-run input', JSON.stringify(messages), abort),
    processOutputStep: ({ text, abort }) => check('output step', text, abort),
    processOutputResult: ({ result, abort }) => check('output result', result.text, abort) ?? check('sub-agent', result.text, abort),
  }
  const look = createTool({
    id: 'look',
    async execute() {
      if (at === 'mid-run input') await agent.sendMessage({ id: 'mid', contents: 'FORBIDDEN' }, thread).stored
      return 'seen'
    },
  })
  const sub = new Agent({ id: 'sub', description: 'Knows.', model: scriptedModel(() => 'FORBIDDEN below.') })
  const call = at === 'sub-agent' ? { toolName: 'agent-sub', toolCallId: 'c1', input: { prompt: 'Ask.' } } : { toolName: 'look' }
  const model = scriptedModel([{ text: 'Looking.', toolCalls: [call] }, { text: ['It is ', 'FORBIDDEN.'] }])
  const agent: Agent = new Agent({ id: 'a', model, tools: { look }, agents: { sub }, inputProcessors: [guard], outputProcessors: [guard] })
  openHeed({ agent, sub }, place.store())
  return { agent, sub }
}

describe.each(sharedPlaceKinds())('what was refused after it was shown, $name', ({ make }) => {
  it.each(['output result', 'output step', 'mid-run input', 'sub-agent'] as const)('[R7.9] by a rejection of the %s is sent to no subscriber that connects later or reconnects, here and in other processes', async (at) => {
    const place = make()
    const { agent, sub } = guarded(at, place)
    const there = new Agent({ id: 'a', model: scriptedModel([]) })
    openHeed({ there }, place.store())
    const early = collect(await agent.subscribeToThread(thread))
    const remote = collect(await there.subscribeToThread(thread))
    const below = collect(await sub.subscribeToThread({ ...thread, threadId: 'child:t/c1' }))
    await agent.sendMessage('Go.', thread).stored
    await idle(agent, thread)
    for (const { chunks } of [early, remote]) await soon(() => types(chunks)).toContain('finish')
    expect(JSON.stringify(early.chunks)).toContain('FORBIDDEN')
    if (at === 'sub-agent') expect(JSON.stringify(below.chunks)).toContain('FORBIDDEN')
    const cursors = ['0.0', ...early.chunks.flatMap(({ type, cursor }) => (type === 'tripwire' || type === 'finish' || cursor === undefined ? [] : [cursor]))]
    expect(cursors.length).toBeGreaterThan(5)
    for (const [who, after] of cursors.flatMap((cursor) => [[agent, cursor], [there, cursor]] as const)) {
      const [first, ...more] = await readUntil((await who.subscribeToThread({ ...thread, after })).stream, isType('data-thread-snapshot', 'tripwire'))
      expect(JSON.stringify([first, ...more])).not.toContain('FORBIDDEN')
    }
    if (at !== 'sub-agent') return
    const [snapshot] = await readUntil((await sub.subscribeToThread({ ...thread, threadId: 'child:t/c1', after: '0.0' })).stream, isType('data-thread-snapshot'))
    expect(snapshot).toMatchObject({ type: 'data-thread-snapshot' })
    expect(JSON.stringify(snapshot)).not.toContain('FORBIDDEN')
  })

  it('[R7.9] of an answer that the model replaced is left out for subscribers that join the run', async () => {
    const hold = gate()
    const polite: Processor = { id: 'polite', processOutputStep: ({ text, abort }) => (text.includes('FORBIDDEN') ? abort('no', { retry: true }) : undefined) }
    const model = scriptedModel([{ text: ['It is ', 'FORBIDDEN.'] }, { text: ['Better', '.'], gate: hold.promise }])
    const agent = new Agent({ id: 'a', model, outputProcessors: [polite] })
    openHeed({ agent }, make().store())
    const early = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('Go.', thread).stored
    await soon(() => model.callCount).toBe(2)
    const joining = collect(await agent.subscribeToThread(thread))
    const back = collect(await agent.subscribeToThread({ ...thread, after: early.chunks[1]?.cursor ?? '' }))
    for (const { chunks } of [joining, back]) await soon(() => types(chunks)).toContain('data-thread-snapshot')
    hold.open()
    for (const { chunks } of [joining, back]) {
      await soon(() => types(chunks)).toContain('finish')
      expect(chunks[0]).toMatchObject({ type: 'data-thread-snapshot', data: { status: 'running', messages: [{ role: 'signal' }] } })
      expect(JSON.stringify(chunks)).not.toContain('FORBIDDEN')
      expect(chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.payload.text : '')).join('')).toBe('Better.')
    }
    expect(JSON.stringify(early.chunks)).toContain('FORBIDDEN')
  })
})

import { describe, expect, it } from 'vitest'
import { Agent, type Chunk, type Processor } from '../../src/index.ts'
import { ModerationProcessor, RegexFilter } from '../../src/processors/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds } from '../thread/places.ts'
import { collect, gate, idle, isType, readUntil, soon, types } from '../thread/said.ts'

const thread = { threadId: 't', resourceId: 'u' }
const secret = 'sk-verysecretwords'

/** Holds all text of a step back until it is checked; refuses, or lets it through as one piece. */
function holding(check: (words: string) => Promise<boolean>): Processor {
  return {
    id: 'holding',
    async processOutputStream({ part, state, emit, abort }) {
      if (part.type === 'text-delta') {
        state.held = `${String(state.held ?? '')}${part.payload.text}`
        return null
      }
      if (part.type !== 'text-end') return part
      const words = String(state.held ?? '')
      state.held = ''
      if (!(await check(words))) abort('not that')
      emit({ type: 'text-delta', runId: part.runId, from: part.from, payload: { id: part.payload.id, text: words } })
      return part
    },
  }
}

function textOf(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.payload.text : '')).join('')
}

const cursors = (chunks: readonly Chunk[]) => chunks.flatMap(({ cursor }) => (cursor === undefined ? [] : [cursor.split('.').map(Number) as [number, number]]))

describe.each(placeKinds())('text that a guardrail holds back, $name', ({ make }) => {
  it('[R7.4] that is refused reaches no subscriber: present, joining in the middle, reconnecting or later', async () => {
    const inside = gate()
    const verdict = gate()
    const guard = holding(async () => (inside.open(), await verdict.promise, false))
    const model = scriptedModel([{ text: ['The key is ', secret, '.'] }, 'Fine.'])
    const agent = new Agent({ id: 'a', model, outputProcessors: [guard] })
    openHeed({ agent }, make().store())
    const early = collect(await agent.subscribeToThread(thread))
    agent.sendMessage('Go.', thread)
    await inside.promise
    // All of it is published, and nothing shown: to the first, to one who replays the run, and to one who wants a snapshot.
    const replaying = collect(await agent.subscribeToThread(thread))
    const last = early.chunks.at(-1)?.cursor
    const back = collect(await agent.subscribeToThread({ ...thread, ...(last === undefined ? {} : { after: last }) }))
    const lost = collect(await agent.subscribeToThread({ ...thread, after: '0.0' }))
    await soon(() => types(replaying.chunks)).toContain('text-start')
    verdict.open()
    await idle(agent, thread)
    for (const { chunks } of [early, replaying, back, lost]) await soon(() => types(chunks)).toContain('tripwire')
    const later = collect(await agent.subscribeToThread({ ...thread, after: '0.0' }))
    await soon(() => later.chunks.length).toBeGreaterThan(0)
    for (const { chunks } of [early, replaying, back, lost, later]) expect(JSON.stringify(chunks)).not.toContain(secret)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(JSON.stringify(messages)).not.toContain(secret)
  })

  it('[R7.4] has no cursor until it is shown: who comes back in between misses nothing and gets nothing twice', async () => {
    const inside = gate()
    const verdict = gate()
    const guard = holding(async () => (inside.open(), await verdict.promise, true))
    const agent = new Agent({ id: 'a', model: scriptedModel([{ text: ['One ', 'two ', 'three.'] }]), outputProcessors: [guard] })
    openHeed({ agent }, make().store())
    const whole = collect(await agent.subscribeToThread(thread))
    agent.sendMessage('Go.', thread)
    await inside.promise
    await soon(() => types(whole.chunks)).toContain('text-start')
    const seen = whole.chunks.length
    const after = whole.chunks.at(-1)?.cursor
    expect(textOf(whole.chunks)).toBe('')
    const rest = readUntil((await agent.subscribeToThread({ ...thread, ...(after === undefined ? {} : { after }) })).stream, isType('finish'))
    verdict.open()
    const returned = await rest
    await soon(() => types(whole.chunks)).toContain('finish')
    expect(textOf(returned)).toBe('One two three.')
    expect(returned).toEqual(whole.chunks.slice(seen))
    const order = cursors(whole.chunks)
    expect(order).toEqual(order.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]))
    expect(new Set(order.map(String)).size).toBe(order.length)
  })

  const builtIn: Array<[string, RegExp | undefined, () => Processor]> = [
    ['a judge with hold', /violence/, () => new ModerationProcessor({ hold: true, judge: new Agent({ id: 'judge', model: scriptedModel(() => JSON.stringify({ categories: [{ name: 'violence', score: 1 }] })) }) })],
    ['a pattern that blocks', /key/, () => new RegexFilter({ rules: [{ name: 'key', pattern: /sk-[a-z]{1,40}/ }], strategy: 'block', phases: ['output'] })],
    ['a pattern that redacts', undefined, () => new RegexFilter({ rules: [{ name: 'key', pattern: /sk-[a-z]{1,40}/ }], strategy: 'redact', phases: ['output'] })],
  ]
  it.each(builtIn)('[R7.4] by %s is not seen by watchers, replays or snapshots, however it is split', async (_, why, make_) => {
    const agent = new Agent({ id: 'a', model: scriptedModel([{ text: ['The key is s', 'k-very', 'secret', 'words', '.'] }]), outputProcessors: [make_()] })
    openHeed({ agent }, make().store())
    const watching = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('Go.', thread).outcome
    const joining = collect(await agent.subscribeToThread(thread))
    await idle(agent, thread)
    await soon(() => types(watching.chunks)).toContain('finish')
    const later = collect(await agent.subscribeToThread({ ...thread, after: '0.0' }))
    await soon(() => later.chunks.length).toBeGreaterThan(0)
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    const refusal = watching.chunks.find((chunk) => chunk.type === 'tripwire')
    if (why) expect(JSON.stringify(refusal)).toMatch(why)
    else expect(refusal).toBeUndefined()
    for (const shown of [textOf(watching.chunks), textOf(joining.chunks), JSON.stringify([watching.chunks, joining.chunks, later.chunks, messages])]) {
      expect(shown).not.toMatch(/verysecretwords|sk-very|secretwords/)
    }
  })

  it('[R7.4] is the guardrail\'s choice: one that looks at the whole answer only keeps it out of history, not from who watched', async () => {
    const late: Processor = { id: 'late', processOutputResult: ({ result, abort }) => (result.text.includes(secret) ? abort('not that') : undefined) }
    const agent = new Agent({ id: 'a', model: scriptedModel([`The key is ${secret}.`]), outputProcessors: [late] })
    openHeed({ agent }, make().store())
    const watching = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('Go.', thread).outcome
    await idle(agent, thread)
    await soon(() => types(watching.chunks)).toContain('tripwire')
    expect(textOf(watching.chunks)).toContain(secret)
    const later = collect(await agent.subscribeToThread({ ...thread, after: '0.0' }))
    await soon(() => later.chunks.length).toBeGreaterThan(0)
    expect(later.chunks).toMatchObject([{ type: 'data-thread-snapshot', data: { messages: [] } }])
    expect(JSON.stringify(later.chunks)).not.toContain(secret)
    expect((await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages).toEqual([])
  })
})

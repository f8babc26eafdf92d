import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, type Chunk, type SendReceipt, type SubscribeOptions, type ThreadSnapshot } from '../../src/index.ts'
import type { Chance } from '../../src/store/conformance/fixture.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { instant, seeded } from './instants.ts'
import { openHeed, placeKinds } from './places.ts'
import { collect, gate, idle, isType, joinedLog, readUntil, soon, types } from './said.ts'
import { kept, told } from './transcript.ts'

const thread = { threadId: 'thread-1', resourceId: 'user-1' }

/** An agent that talks a lot, with tools and moments that are drawn. */
function talker(chance: Chance, words: number) {
  let steps = 0
  const model = scriptedModel(() => {
    steps = steps < 3 && chance.below(2) === 0 ? steps + 1 : 0
    return {
      ...(chance.below(3) === 0 ? { reasoning: 'Let me think about that.' } : {}),
      text: Array.from({ length: 1 + chance.below(words) }, (_, index) => `word ${index} `),
      ...(steps > 0 ? { toolCalls: [{ toolName: 'look', toolCallId: `look-${chance.below(1e9)}` }] } : {}),
      gate: { parts: chance.below(words), until: instant(chance) },
    }
  }, { record: false })
  const look = createTool({
    id: 'look',
    async *execute() {
      yield 'looking'
      await instant(chance)
      yield 'seen'
    },
  })
  const agent = new Agent({ id: 'talker', model, tools: { look }, memory: new Memory({ lastMessages: 1_000 }) })
  return agent as unknown as Agent
}

async function history(agent: Agent) {
  return kept((await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages)
}

/** Sends at drawn moments, then one that everyone is shown: who has seen it has seen all. */
async function talk(agent: Agent, chance: Chance, count: number): Promise<void> {
  const receipts: SendReceipt[] = []
  for (let index = 0; index < count; index++) {
    const send = chance.below(4) === 0 ? agent.queueMessage : agent.sendMessage
    receipts.push(send.call(agent, { contents: `message ${index}`, id: `m${index}` }, thread))
    for (let pauses = chance.below(8); pauses > 0; pauses--) await instant(chance)
  }
  await Promise.all(receipts.map(({ stored }) => stored))
  await soon(async () => (await agent.activeRun(thread)) === null && (await agent.listQueued(thread)).length === 0).toBe(true)
  await agent.sendMessage({ contents: 'end', id: 'end' }, { ...thread, ifIdle: { behavior: 'persist' } }).outcome
}

function isEnd(chunk: Chunk | undefined): boolean {
  if (!chunk || !('data' in chunk)) return false
  if (chunk.type === 'data-thread-snapshot') return (chunk.data as ThreadSnapshot).messages.at(-1)?.id === 'end'
  return (chunk.data as { id?: string }).id === 'end'
}

/** Comes and goes, each time with the cursor of the last chunk it saw, until it has seen the end. */
async function comeAndGo(agent: Agent, chance: Chance, first: Partial<SubscribeOptions> = {}): Promise<Chunk[]> {
  const chunks: Chunk[] = []
  for (let options = first; !isEnd(chunks.at(-1)); ) {
    const watcher = await agent.subscribeToThread({ ...thread, ...options })
    const reader = watcher.stream[Symbol.asyncIterator]()
    let left = 1 + chance.below(60)
    const patience = soonOrNever(chance)
    while (left-- > 0 && !isEnd(chunks.at(-1))) {
      const next = await Promise.race([reader.next(), patience()])
      if (!next || next.done) break
      chunks.push(next.value)
    }
    watcher.unsubscribe()
    const { cursor } = chunks.at(-1) ?? {}
    if (cursor !== undefined) options = { after: cursor }
    for (let pauses = chance.below(10); pauses > 0; pauses--) await instant(chance)
  }
  return chunks
}

/** A watcher that gives up after a while in which nothing came, as one whose connection broke. */
function soonOrNever(chance: Chance): () => Promise<undefined> {
  return async () => {
    for (let turns = 5 + chance.below(20); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve))
    return undefined
  }
}

const seeds = Array.from({ length: 8 }, (_, index) => index + 1)

describe.each(placeKinds())('subscribers, $name', ({ make }) => {
  it.each(seeds)('[W1.1] that reconnect receive what a permanent subscriber receives: seed %i', (seed) =>
    seeded(seed, async (chance) => {
      const agent = talker(chance, 30)
      openHeed({ agent }, make().store())
      const whole = await agent.subscribeToThread(thread)
      const seen = collect(whole)
      const restless = Array.from({ length: 3 }, () => comeAndGo(agent, chance))
      await talk(agent, chance, 6)
      const logs = await Promise.all(restless)
      await soon(() => isEnd(seen.chunks.at(-1))).toBe(true)
      whole.unsubscribe()

      expect(told(seen.chunks)).toEqual(await history(agent))
      for (const log of logs) {
        // A subscriber stayed, so everything is still there for those who return: no snapshot, no gap, no repeat.
        const from = seen.chunks.findIndex(({ cursor }) => cursor === log[0]?.cursor)
        expect(log.some(isType('data-thread-snapshot'))).toBe(false)
        expect(joinedLog(log)).toEqual(joinedLog(seen.chunks.slice(from)))
      }
    }))

  it.each(seeds)('[W1.1] that reconnect alone have the whole log in the end, by missed chunks or by a snapshot: seed %i', (seed) =>
    seeded(50 + seed, async (chance) => {
      const agent = talker(chance, 30)
      openHeed({ agent }, make().store())
      const [log] = await Promise.all([comeAndGo(agent, chance, { snapshot: true }), talk(agent, chance, 6)])
      expect(told(log)).toEqual(await history(agent))
      // Cursors only grow, so that a subscriber that returns never goes back.
      const cursors = log.map(({ cursor = '' }) => cursor.split('.').map(Number) as [number, number])
      for (const [index, [epoch, place]] of cursors.entries()) {
        const [before, placeBefore] = cursors[index - 1] ?? [0, 0]
        expect(epoch > before || (epoch === before && place >= placeBefore)).toBe(true)
      }
    }))

  it.each(seeds)('[W1.1] that begin with a snapshot at any moment receive exactly the rest: seed %i', (seed) =>
    seeded(100 + seed, async (chance) => {
      const agent = talker(chance, 200)
      openHeed({ agent }, make().store())
      const talking = talk(agent, chance, 5)
      const logs = await Promise.all(Array.from({ length: 12 }, async () => {
        for (let pauses = chance.below(40); pauses > 0; pauses--) await instant(chance)
        const watcher = await agent.subscribeToThread({ ...thread, snapshot: true })
        const reader = watcher.stream[Symbol.asyncIterator]()
        const chunks: Chunk[] = []
        while (!isEnd(chunks.at(-1))) {
          const { value, done } = await reader.next()
          if (done) break
          chunks.push(value)
          if (chance.below(4) === 0) await instant(chance)
        }
        watcher.unsubscribe()
        return chunks
      }))
      await talking
      const whole = await history(agent)
      for (const log of logs) {
        expect(log[0]?.type).toBe('data-thread-snapshot')
        expect(log.filter(isType('data-thread-snapshot'))).toHaveLength(1)
        expect(told(log)).toEqual(whole)
      }
    }))

  it('[W1.1] that return too late start from a snapshot with the reason', async () => {
    const agent = new Agent({ id: 'talker', model: scriptedModel([{ text: ['One'] }, { text: Array.from({ length: 10_000 }, () => 'x') }], { record: false }) })
    openHeed({ agent }, make().store())
    const watcher = await agent.subscribeToThread(thread)
    agent.sendMessage({ contents: 'a', id: 'a' }, thread)
    const first = await readUntil(watcher.stream, isType('finish'))
    const { cursor = '' } = first[3] ?? {}
    // Still kept: exactly what was missed.
    const back = await agent.subscribeToThread({ ...thread, after: cursor })
    expect((await readUntil(back.stream, isType('finish'))).map((chunk) => chunk.cursor)).toEqual(first.slice(4).map((chunk) => chunk.cursor))
    agent.sendMessage({ contents: 'b', id: 'b' }, thread)
    await readUntil(back.stream, (chunk) => chunk.type === 'finish' && chunk.runId !== first[0]?.runId)
    const late = await agent.subscribeToThread({ ...thread, after: cursor })
    const [snapshot] = await readUntil(late.stream, () => true)
    expect(snapshot).toMatchObject({ type: 'data-thread-snapshot', data: { reason: 'expired', status: 'idle', runId: null } })
    expect(told(snapshot ? [snapshot] : [])).toEqual(await history(agent as unknown as Agent))
    await expect(agent.subscribeToThread({ ...thread, after: 'nonsense' })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(agent.subscribeToThread({ ...thread, threadId: '' })).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  it('[W2.1] in any number receive the same chunks in the same order, from the start of the run', async () => {
    const hold = gate()
    const model = scriptedModel([{ text: ['a ', 'b ', 'c '], gate: { parts: 2, until: hold.promise } }])
    const agent = new Agent({ id: 'talker', model })
    openHeed({ agent }, make().store())
    const early = await Promise.all(Array.from({ length: 50 }, () => agent.subscribeToThread(thread)))
    await agent.sendMessage('Go.', thread).outcome
    await Promise.all(early.slice(0, 1).map(({ stream }) => readUntil(stream, isType('text-delta'))))
    const late = await Promise.all(Array.from({ length: 50 }, () => agent.subscribeToThread(thread)))
    hold.open()
    const logs = await Promise.all([...early, ...late].map(({ stream }) => readUntil(stream, isType('finish'))))
    expect(types(logs[0] ?? [])).toEqual(['start', 'data-user-message', 'step-start', 'response-metadata', 'text-start', 'text-delta', 'text-delta', 'text-delta', 'text-end', 'step-finish', 'finish'])
    for (const log of logs) expect(log).toEqual(logs[0])
    const after = await agent.subscribeToThread(thread)
    agent.sendMessage('note', { ...thread, ifIdle: { behavior: 'persist' } })
    expect(types(await readUntil(after.stream, () => true))).toEqual(['data-user-message'])
  })

  it('that unsubscribe in the middle do not affect the run and the others, and end at once', async () => {
    const hold = gate()
    const agent = new Agent({ id: 'talker', model: scriptedModel([{ text: 'A long answer.', gate: { parts: 2, until: hold.promise } }]) })
    openHeed({ agent }, make().store())
    const [one, other] = await Promise.all([agent.subscribeToThread(thread), agent.subscribeToThread(thread)])
    const seen = collect(one)
    await agent.sendMessage('Go.', thread).outcome
    await soon(() => types(seen.chunks)).toContain('text-delta')
    one.unsubscribe()
    one.unsubscribe()
    await seen.done
    expect(await one.stream[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined })
    hold.open()
    expect(types(await readUntil(other.stream, isType('finish'))).at(-1)).toBe('finish')
    await idle(agent, thread)
  })
})

describe('a subscriber that never reads', () => {
  it('[W3.1] uses no memory while a million chunks stream, slows no other, and has the whole log when it reads', async () => {
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    const heap = () => {
      collectGarbage()
      return process.memoryUsage().heapUsed / 2 ** 20
    }
    const million = 1_000_000
    // One object for all deltas: what is counted is what watching costs.
    const word: LanguageModelV4StreamPart = { type: 'text-delta', id: 't', delta: 'ab' }
    const parts: LanguageModelV4StreamPart[] = [{ type: 'stream-start', warnings: [] }, { type: 'text-start', id: 't' }]
    for (let index = 0; index < million; index++) parts.push(word)
    parts.push({ type: 'text-end', id: 't' }, {
      type: 'finish',
      finishReason: { unified: 'stop', raw: undefined },
      usage: { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } },
    })
    const agent = new Agent({ id: 'talker', model: scriptedModel([{ parts }], { record: false }) })
    const [{ make }] = placeKinds()
    // The stream leaves no time for timers: on a slow machine the lease would run out.
    const clock = virtualClock()
    openHeed({ agent }, make({ clock }).store(), { clock })
    const never = await Promise.all(Array.from({ length: 10 }, () => agent.subscribeToThread(thread)))
    const begun = never.map(({ stream }) => stream[Symbol.asyncIterator]())
    const before = heap()
    const busy = await agent.subscribeToThread(thread)
    agent.sendMessage('Go.', thread)

    let letters = 0
    let halfway = 0
    for await (const chunk of busy.stream) {
      if (chunk.type === 'text-delta' && 'payload' in chunk) {
        letters += chunk.payload.text.length
        if (letters === million) halfway = heap()
      }
      if (chunk.type === 'finish') break
    }
    // What the run itself said is kept once for the row and once for snapshots; watchers add nothing to it.
    expect(halfway - before).toBeLessThan(150)
    expect(letters).toBe(2 * million)
    await idle(agent, thread)
    expect(heap() - before).toBeLessThan(60)
    const whole = await history(agent as unknown as Agent)
    for (const reader of begun) {
      const log = await readUntil(reader, isType('finish'))
      expect(log.find(isType('data-thread-snapshot'))).toMatchObject({ data: { reason: 'behind' } })
      expect(told(log)).toEqual(whole)
    }
  })

  it('[W3.1] does not fill the thread with signals that are persisted while it is idle', async () => {
    const agent = new Agent({ id: 'talker', model: scriptedModel([]) })
    const [{ make }] = placeKinds()
    openHeed({ agent }, make().store())
    const never = await agent.subscribeToThread(thread)
    const reader = never.stream[Symbol.asyncIterator]()
    for (let index = 0; index < 10_000; index++) agent.sendMessage({ contents: 'x', id: `n${index}` }, { ...thread, ifIdle: { behavior: 'persist' } })
    await agent.sendMessage({ contents: 'x', id: 'end' }, { ...thread, ifIdle: { behavior: 'persist' } }).outcome
    const [snapshot] = await readUntil(reader, () => true)
    expect(snapshot).toMatchObject({ type: 'data-thread-snapshot', data: { reason: 'behind' } })
    expect(told(snapshot ? [snapshot] : []).at(-1)).toBe('signal end')
  })
})

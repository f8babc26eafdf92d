import { describe, expect, it, vi } from 'vitest'
import type { Clock } from '../../src/base/clock.ts'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { collect, gate, idle, soon, types } from '../thread/said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

/** A process that sleeps: time goes on without it, and its timers come late. */
function drowsyClock(): { clock: Clock; sleep(ms: number): void } {
  const timers = virtualClock()
  let slept = 0
  return {
    clock: { now: () => timers.now() + slept, after: (ms, run, options) => timers.after(ms, run, options) },
    sleep(ms) {
      slept += ms
    },
  }
}

function words(chunks: readonly object[]): string[] {
  return chunks.flatMap((chunk) => ('payload' in chunk && typeof chunk.payload === 'object' && chunk.payload && 'text' in chunk.payload ? [String(chunk.payload.text)] : []))
}

describe.each(sharedPlaceKinds())('a process that slept beyond its lease, $name', ({ make }) => {
  it('[R1.5] says nothing more when another has its thread', async () => {
    const { clock, sleep } = drowsyClock()
    const place = make({ clock })
    const hold = gate()
    const model = scriptedModel([{ text: ['I am ', 'still here.'], gate: { parts: 2, until: hold.promise } }])
    const asleep = new Agent({ id: 'clerk', model })
    openHeed({ agent: asleep }, place.store(), { clock })
    const seen = collect(await asleep.subscribeToThread(thread))
    await asleep.sendMessage('Ten files.', thread).outcome
    await soon(() => words(seen.chunks)).toEqual(['I am '])

    sleep(11_000)
    const awake = new Agent({ id: 'clerk', model: scriptedModel(['I took over.']) })
    const heed = openHeed({ agent: awake }, place.store(), { clock })
    await heed.start()
    await idle(awake, thread)
    hold.open()
    await asleep.sendMessage({ contents: 'Anybody?', id: 'later' }, { ...thread, ifIdle: { behavior: 'persist' } }).persisted
    // As an echo, or in a snapshot.
    await soon(() => JSON.stringify(seen.chunks)).toContain('"id":"later"')
    // What the other one says is seen here too; of the sleeper's own epoch there is nothing more.
    const own = seen.chunks.filter(({ type, cursor }) => cursor?.startsWith('1.') && type !== 'data-thread-snapshot')
    expect(words(own)).toEqual(['I am '])
    expect(types(own)).not.toContain('step-finish')
    expect(words(seen.chunks)).not.toContain('still here.')
  })

  it('[R1.5] begins no run of a send whose answer came late, when another has its thread', async () => {
    const { clock, sleep } = drowsyClock()
    const place = make({ clock })
    const model = scriptedModel(() => 'From the sleeper.')
    const asleep = new Agent({ id: 'clerk', model })
    const store = place.store()
    const heed = openHeed({ agent: asleep }, store, { clock })
    await heed.start()
    const seen = collect(await asleep.subscribeToThread(thread))
    const [answered, arrival] = [gate(), gate()]
    const accept = store.accept.bind(store)
    vi.spyOn(store, 'accept').mockImplementationOnce(async (sends) => {
      const answers = await accept(sends)
      answered.open()
      await arrival.promise
      return answers
    })
    const receipt = asleep.sendMessage('Ten files.', thread)
    await answered.promise

    sleep(11_000)
    const awake = new Agent({ id: 'clerk', model: scriptedModel(['I took over.']) })
    await openHeed({ agent: awake }, place.store(), { clock }).start()
    await idle(awake, thread)
    // The sleeper renews its lease before it reads the answer.
    await asleep.generate('Other files.', { memory: { thread: 'thread-2', resource: 'user-1' } })
    arrival.open()
    await receipt.outcome
    await asleep.sendMessage({ contents: 'Anybody?', id: 'later' }, { ...thread, ifIdle: { behavior: 'persist' } }).persisted
    await soon(() => JSON.stringify(seen.chunks)).toContain('"id":"later"')
    expect(words(seen.chunks)).not.toContain('From the sleeper.')
    expect(model.callCount).toBe(1)
  })

  it('[R1.5] [R5.5] begins no tool when another has its thread', async () => {
    const { clock, sleep } = drowsyClock()
    const place = make({ clock })
    const hold = gate()
    const ran: string[] = []
    const pay = (who: string, before: Promise<void>) => createTool({
      id: 'pay',
      requireApproval: async () => {
        await before
        return false
      },
      execute: () => {
        ran.push(who)
        return 'paid'
      },
    })
    const asleep = new Agent({ id: 'clerk', model: scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }]), tools: { pay: pay('asleep', hold.promise) } })
    openHeed({ agent: asleep }, place.store(), { clock })
    const seen = collect(await asleep.subscribeToThread(thread))
    await asleep.sendMessage('Pay.', thread).outcome
    await soon(() => types(seen.chunks)).toContain('tool-call')

    sleep(11_000)
    const awake = new Agent({ id: 'clerk', model: scriptedModel(['I looked.']), tools: { pay: pay('awake', Promise.resolve()) } })
    const heed = openHeed({ agent: awake }, place.store(), { clock })
    await heed.start()
    await idle(awake, thread)
    hold.open()
    await asleep.sendMessage({ contents: 'Anybody?', id: 'later' }, { ...thread, ifIdle: { behavior: 'persist' } }).persisted
    await soon(() => JSON.stringify(seen.chunks)).toContain('"id":"later"')
    // The call had not begun: the other process ran it, once.
    expect(ran).toEqual(['awake'])
    const { messages } = await (await awake.getMemory()).recall(thread)
    expect(JSON.stringify(messages)).not.toContain('It is not known whether it took effect')
  })

  it('[R1.8] goes on where it was when no process took its thread', async () => {
    const { clock, sleep } = drowsyClock()
    const hold = gate()
    const model = scriptedModel([{ text: ['I am ', 'still here.'], gate: { parts: 2, until: hold.promise } }, 'I was asleep.'])
    const agent = new Agent({ id: 'clerk', model })
    const place = make({ clock })
    openHeed({ agent }, place.store(), { clock })
    const seen = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('Ten files.', thread).outcome
    await soon(() => words(seen.chunks)).toEqual(['I am '])
    sleep(11_000)
    hold.open()
    await idle(agent, thread)
    await soon(() => types(seen.chunks)).toContain('finish')
    expect(words(seen.chunks).join('')).toBe('I am still here.')
    expect(model.callCount).toBe(1)
    const { messages } = await (await agent.getMemory()).recall(thread)
    expect(messages.map(({ role }) => role)).toEqual(['signal', 'assistant'])
  })

  it('[R1.8] keeps the results of tools that hold the event loop longer than the lease', async () => {
    const { clock, sleep } = drowsyClock()
    let ran = 0
    const compute = createTool({
      id: 'compute',
      execute: () => {
        sleep(12_000)
        return `result ${++ran}`
      },
    })
    const call = { toolCalls: [{ toolName: 'compute', input: {} }] }
    const model = scriptedModel([call, call, call, 'Computed.'])
    const agent = new Agent({ id: 'clerk', model, tools: { compute } })
    openHeed({ agent }, make({ clock }).store(), { clock })
    const seen = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('Compute.', thread).outcome
    await idle(agent, thread)
    await soon(() => types(seen.chunks)).toContain('finish')
    expect([ran, model.callCount]).toEqual([3, 4])
    expect(types(seen.chunks).filter((type) => type === 'tool-result')).toHaveLength(3)
    expect(words(seen.chunks).at(-1)).toBe('Computed.')
    const { messages } = await (await agent.getMemory()).recall(thread)
    expect(JSON.stringify(messages)).not.toContain('interrupted')
  })

  it('[R1.8] starts a tool after the store has confirmed the lease', async () => {
    const { clock, sleep } = drowsyClock()
    const ran: string[] = []
    const pay = createTool({
      id: 'pay',
      requireApproval: () => {
        sleep(12_000)
        return false
      },
      execute: () => {
        ran.push('paid')
        return 'paid'
      },
    })
    const agent = new Agent({ id: 'clerk', model: scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Paid.']), tools: { pay } })
    openHeed({ agent }, make({ clock }).store(), { clock })
    const { text } = await agent.generate('Pay.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    expect([text, ran]).toEqual(['Paid.', ['paid']])
  })
})

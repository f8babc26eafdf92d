import { renameSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { HeedError } from '../../src/base/errors.ts'
import { createHandler } from '../../src/http/server.ts'
import { Agent, createTool, InMemoryStore, type Logger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { newFile } from '../new-file.ts'
import { faulty, first, full, unavailable } from './faulty-store.ts'
import { memoryPlace, openHeed } from './places.ts'
import { collect, gate, idle, soon, types } from './said.ts'

const thread = { threadId: 't', resourceId: 'u' }

function errorLog(): { logger: Logger; errors: string[] } {
  const errors: string[] = []
  return { logger: { debug() {}, info() {}, warn() {}, error: (message) => void errors.push(message) } as Logger, errors }
}

describe('a process whose store fails', () => {
  it('[R1.7] takes a thread once when a commit and a send fail one after the other', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const hold = gate()
    let looked = 0
    const look = createTool({
      id: 'look',
      idempotent: true,
      async execute() {
        if (++looked > 1) await hold.promise
        return 'seen'
      },
    })
    const model = scriptedModel(({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? 'Done.' : { toolCalls: [{ toolName: 'look', toolCallId: 'c' }] }))
    const agent = new Agent({ id: 'a', model, tools: { look } })
    const heed = openHeed({ agent }, store, { clock })
    await heed.start()
    const watched = collect(await agent.subscribeToThread(thread))
    // The commit of the result fails, then a send.
    let commits = 0
    on('commitStep', () => (++commits === 2 ? unavailable() : undefined))
    await agent.sendMessage('Look.', thread).outcome
    await soon(() => commits).toBe(2)
    await clock.advance(600)
    on('accept', first(1, unavailable))
    await agent.sendMessage('Look well.', thread).stored
    await clock.advance(0)
    await soon(async () => {
      await clock.advance(500)
      return looked
    }).toBe(2)
    await clock.advance(2_000)
    hold.open()
    await idle(agent, thread)
    expect(looked).toBe(2)
    expect(types(watched.chunks)).not.toContain('tool-error')
    expect(JSON.stringify(await (await agent.getMemory()).recall(thread))).not.toContain('interrupted')
  })

  it('[A1.4] rejects no send that it stored: where only the reads after it fail, a later read finds the outcome', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const pay = createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', toolCallId: 'c' }] }, 'Paid.', 'And done.'])
    const agent = new Agent({ id: 'a', model, tools: { pay } })
    const heed = openHeed({ agent }, store, { clock })
    await heed.start()
    const watched = collect(await agent.subscribeToThread(thread))
    await agent.sendMessage('Pay.', thread).outcome
    await soon(() => types(watched.chunks)).toContain('tool-call-approval')
    // The thread has no runner, so that the process reads more of it after the send is stored.
    for (const method of ['claim', 'getThread'] as const) on(method, () => unavailable())
    const receipt = agent.queueMessage('And then?', thread)
    await receipt.stored
    const outcomes: string[] = []
    void receipt.outcome.then(({ action }) => outcomes.push(action))
    await clock.advance(100)
    expect(outcomes).not.toContain('rejected')
    for (const method of ['claim', 'getThread'] as const) on(method)
    await agent.sendToolApproval({ ...thread, toolCallId: 'c', approved: true })
    await soon(async () => {
      await clock.advance(5_000)
      return outcomes
    }).toEqual(['woke'])
    await idle(agent, thread)
    expect(model.calls).toHaveLength(3)
    await heed.close()
  })

  it('[R1.7] sweeps take no thread from a host of their own process whose heartbeat has expired', async () => {
    const clock = virtualClock()
    const inner = new InMemoryStore({ clock })
    const { store, on } = faulty(inner)
    const hold = gate()
    let looked = 0
    const look = createTool({ id: 'look', execute: async () => (looked++, await hold.promise, 'seen') })
    const model = scriptedModel(({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? 'Done.' : { toolCalls: [{ toolName: 'look', toolCallId: 'c' }] }))
    const agent = new Agent({ id: 'a', model, tools: { look } })
    const heed = openHeed({ agent }, store, { clock })
    await heed.start()
    await agent.sendMessage('Look.', thread).outcome
    await soon(() => looked).toBe(1)
    const before = await inner.getThread({ threadId: 't' })
    let swept = 0
    on('listOrphans', () => void swept++)
    on('heartbeat', () => unavailable())
    await soon(async () => {
      await clock.advance(1_000)
      return swept
    }).toBeGreaterThan(5)
    expect(await inner.getThread({ threadId: 't' })).toEqual(before)
    on('heartbeat')
    await clock.advance(4_000)
    hold.open()
    await idle(agent, thread)
    expect([looked, JSON.stringify(await (await agent.getMemory()).recall(thread)).includes('interrupted')]).toEqual([1, false])
  })

  it('[R1.8] holds back a limited number of chunks while the store does not confirm the lease, then continues from what is stored', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const [hold, heartbeat] = [gate(), gate()]
    const long = { text: ['I ', ...Array.from({ length: 9_000 }, () => 'x')], gate: { parts: 2, until: hold.promise }, hang: true }
    const model = scriptedModel([long, 'I go on.'])
    const agent = new Agent({ id: 'a', model })
    const heed = openHeed({ agent }, store, { clock })
    await heed.start()
    const watched = collect(await agent.subscribeToThread(thread))
    const deltas = () => types(watched.chunks).filter((type) => type === 'text-delta')
    await agent.sendMessage('Ten files.', thread).outcome
    await soon(() => deltas().length).toBe(1)
    on('heartbeat', () => heartbeat.promise)
    await clock.advance(11_000)
    hold.open()
    // The model hangs after its text: the run is left by the limit alone.
    on('heartbeat')
    heartbeat.open()
    await soon(async () => {
      await clock.advance(1_000)
      return types(watched.chunks).includes('finish')
    }).toBe(true)
    expect(model.callCount).toBe(2)
    expect(deltas().length).toBeLessThan(9_000)
    await idle(agent, thread)
  })

  it('[R1.8] executes a tool after a pause beyond the lease, also where a heartbeat was under way when the pause began', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const { logger, errors } = errorLog()
    const [started, heartbeat] = [gate(), gate()]
    let ran = 0
    const look = createTool({ id: 'look', execute: () => ++ran })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'look', toolCallId: 'c' }] }, 'Done.'])
    const agent = new Agent({ id: 'a', model, tools: { look } })
    const heed = openHeed({ agent }, store, { clock, logger })
    await heed.start()
    let commits = 0
    on('commitStep', () => (++commits === 1 ? started.promise : undefined))
    await agent.sendMessage('Look.', thread).outcome
    await soon(() => commits).toBe(1)
    // The pause: the heartbeat and the commit that stores the start of the tool are answered after the lease has expired.
    let beats = 0
    on('heartbeat', () => (++beats === 1 ? heartbeat.promise : undefined))
    await clock.advance(21_000)
    expect(beats).toBe(1)
    started.open()
    // The tool waits for the heartbeat.
    await clock.advance(0)
    heartbeat.open()
    await idle(agent, thread)
    expect({ ran, calls: model.callCount, errors }).toEqual({ ran: 1, calls: 2, errors: [] })
  })

  it('[R5.7] waits longer after each failure, does not count it as an attempt, and goes on when the store works', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const model = scriptedModel(['Done.'], { loop: true })
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, store, { clock })
    on('commitStep', () => unavailable())
    const { signal, outcome } = agent.sendMessage('Hi', thread)
    await outcome
    for (let second = 0; second < 15; second++) await clock.advance(1_000)
    expect(model.callCount).toBeLessThanOrEqual(5)
    for (let minute = 0; minute < 20; minute++) await clock.advance(60_000)
    expect(model.callCount).toBeGreaterThan(12)
    on('commitStep')
    await soon(async () => {
      await clock.advance(60_000)
      return (await agent.explain({ ...thread, signalId: signal.id }))?.run?.status
    }).toBe('finished')
  })

  it('[R5.7] repeats a commit for which there is no space, and not the model call', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const model = scriptedModel(['Done.', 'Again.'])
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, store, { clock })
    on('commitStep', () => full())
    const { signal, outcome } = agent.sendMessage('Hi', thread)
    await outcome
    await clock.advance(10_000)
    on('commitStep')
    await clock.advance(1_000)
    await idle(agent, thread)
    expect(model.callCount).toBe(1)
    expect(await agent.explain({ ...thread, signalId: signal.id })).toMatchObject({ run: { status: 'finished', attempts: 1 } })
  })

  it('[R5.7] names in the error of a parked run why its last attempt failed', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const agent = new Agent({ id: 'a', model: scriptedModel(['Done.'], { loop: true }) })
    openHeed({ agent }, store, { clock })
    on('commitStep', first(10, () => new TypeError('the row has no id')))
    const { signal, outcome } = agent.sendMessage('Hi', thread)
    await outcome
    await soon(async () => {
      await clock.advance(60_000)
      return (await agent.explain({ ...thread, signalId: signal.id }))?.run?.status
    }).toBe('parked')
    expect(await agent.explain({ ...thread, signalId: signal.id })).toMatchObject({ run: { error: { message: expect.stringContaining('the row has no id') } } })
  })

  describe.each(['answered', 'lost'] as const)('when the answer to a claim of a sweep is %s', (answer) => {
    it('[R5.7] [R1.7] continues a run whose hosts failed under several leases, also where an earlier one is to be claimed again', async () => {
      const clock = virtualClock()
      const inner = new InMemoryStore({ clock })
      const place = memoryPlace(inner)
      const { store, on } = faulty(place.store())
      const agent = new Agent({ id: 'a', model: scriptedModel(['Done.'], { loop: true }) })
      const heed = openHeed({ agent }, store, { clock })
      await heed.start()
      on('heartbeat', () => unavailable())
      await clock.advance(11_000)
      const { signal } = agent.sendMessage('Hi', thread)
      // The lease of the process has expired: hosts fail, and the pauses between claims grow to a minute.
      for (let minute = 0; minute < 5; minute++) await clock.advance(60_000)
      const former = await inner.getThread({ threadId: 't' })
      // Another process takes the thread and hands it over. A sweep here claims it before the lease of before is to be claimed again.
      const other = new Agent({ id: 'a', model: scriptedModel([{ text: ['One'], hang: true }]) })
      const second = openHeed({ other }, place.store(), { clock })
      await second.start()
      await soon(async () => (await inner.getThread({ threadId: 't' }))?.owner).not.toBe(former?.owner)
      if (answer === 'lost') {
        on('claim', async ([threadId, owner, agentIds]) => {
          await inner.claim(threadId as string, owner as string, agentIds as string[])
          throw unavailable()
        })
      }
      await second.close()
      await soon(async () => (await inner.getThread({ threadId: 't' }))?.owner).toBe(former?.owner)
      await clock.advance(0)
      on('heartbeat')
      on('claim')
      await soon(async () => {
        await clock.advance(10_000)
        return (await agent.explain({ ...thread, signalId: signal.id }))?.run?.status
      }).toBe('finished')
    })
  })

  it('[A1.5] stops when the database is gone, and goes on when it is back', async () => {
    const path = newFile()
    const clock = virtualClock()
    const { logger, errors } = errorLog()
    let paid = 0
    const pay = createTool({ id: 'pay', execute: () => `paid ${++paid}` })
    const model = scriptedModel(({ prompt }) => (prompt.at(-1)?.role === 'tool' ? 'Done.' : { toolCalls: [{ toolName: 'pay' }] }))
    const agent = new Agent({ id: 'a', model, tools: { pay } })
    const heed = openHeed({ agent }, new LibSQLStore({ url: `file:${path}` }), { clock, logger })
    const handler = createHandler(heed, { auth: 'local' })
    const ready = async () => (await handler(new Request('http://localhost/api/ready'))).status
    await agent.sendMessage('One', thread).stored
    await idle(agent, thread)
    expect(await ready()).toBe(200)

    renameSync(path, `${path}.away`)
    await expect(agent.sendMessage('Two', thread).stored).rejects.toMatchObject({ code: 'store_gone' })
    const before = paid
    for (const text of ['Three', 'Four']) {
      const { stored, outcome } = agent.sendMessage(text, thread)
      await expect(stored).rejects.toMatchObject({ code: 'store_gone' })
      expect(await outcome).toMatchObject({ action: 'rejected', code: 'store_gone' })
    }
    await clock.advance(10_000)
    expect(paid).toBe(before)
    // Neither a probe nor a request that is rejected logs the failure again.
    for (const _ of [1, 2]) expect(await ready()).toBe(503)
    const body = JSON.stringify({ ...thread, message: 'Five' })
    const sent = await handler(new Request('http://localhost/api/agents/agent/send-message', { method: 'POST', body, headers: { 'content-type': 'application/json' } }))
    expect([sent.status, await sent.json()]).toMatchObject([503, { code: 'store_gone' }])
    expect(errors).toEqual([expect.stringContaining('the storage failed')])

    renameSync(`${path}.away`, path)
    await soon(async () => {
      await clock.advance(4_000)
      return ready()
    }).toBe(200)
    await agent.sendMessage('Five', thread).stored
    await soon(async () => {
      await clock.advance(1_000)
      return agent.activeRun(thread)
    }).toBeNull()
    expect(errors.filter((message) => message.includes('the storage failed'))).toHaveLength(1)
  })

  it('[A1.5] calls no model for a run that begins while the store fails, until it works again', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const [answer, begin] = [gate(), gate()]
    const model = scriptedModel([{ text: ['One'], gate: { parts: 1, until: answer.promise } }, 'Two', 'Three'])
    const agent = new Agent({ id: 'a', model })
    openHeed({ agent }, store, { clock })
    await agent.sendMessage('One', thread).outcome
    const { signal } = agent.queueMessage('Two', thread)
    let began = 0
    on('beginRun', () => (++began === 1 ? begin.promise : undefined))
    answer.open()
    await soon(() => began).toBe(1)
    on('flush', () => new HeedError('store_gone', 'The database was moved.'))
    await expect(agent.sendMessage('Persisted', { ...thread, ifActive: { behavior: 'persist' } }).stored).rejects.toMatchObject({ code: 'store_gone' })
    begin.open()
    await clock.advance(10_000)
    expect(model.callCount).toBe(1)
    on('flush')
    await soon(async () => {
      await clock.advance(1_000)
      return (await agent.explain({ ...thread, signalId: signal.id }))?.run?.status
    }).toBe('finished')
    expect(model.callCount).toBe(2)
  })

  it('[A1.5] treats a failure that returns at once as the same failure: it is logged once, and tried ever more rarely', async () => {
    const clock = virtualClock()
    const { store, on } = faulty(new InMemoryStore({ clock }))
    const { logger, errors } = errorLog()
    const agent = new Agent({ id: 'a', model: scriptedModel(['Done.'], { loop: true }) })
    openHeed({ agent }, store, { clock, logger })
    await agent.sendMessage('One', thread).stored
    await idle(agent, thread)
    // A damaged page that sends read, and heartbeats don't.
    let tried = 0
    on('accept', () => {
      tried++
      return new HeedError('store_corrupt', 'The database is damaged.')
    })
    for (let second = 0; second < 600; second++) {
      await expect(agent.sendMessage('Two', thread).stored).rejects.toMatchObject({ code: 'store_corrupt' })
      await clock.advance(1_000)
    }
    expect(errors.filter((message) => message.includes('the storage failed'))).toHaveLength(1)
    expect(tried).toBeLessThan(12)
    on('accept')
    await soon(async () => {
      await clock.advance(60_000)
      return agent.sendMessage('Three', thread).stored.then(() => 'stored', () => 'rejected')
    }).toBe('stored')
  })

  it('[R5.4] claims the threads behind one whose claim fails', async () => {
    const clock = virtualClock()
    const inner = new InMemoryStore({ clock })
    const sends = new Agent({ id: 'b', model: scriptedModel(['x'], { loop: true }) })
    const gone = openHeed({ sends }, inner, { clock })
    for (const threadId of ['t1', 't2', 't3']) {
      await inner.accept([{
        threadId, resourceId: 'u', agentId: 'a', id: `s-${threadId}`, mode: 'now', ifActive: { behavior: 'deliver' }, ifIdle: { behavior: 'wake' },
        rows: [], runId: `r-${threadId}`, now: clock.now(),
      }])
    }
    const { store, on } = faulty(inner)
    on('claim', ([threadId]) => (threadId === 't1' ? new Error('this thread can not be read') : undefined))
    const model = scriptedModel(['Done.'], { loop: true })
    const heed = openHeed({ a: new Agent({ id: 'a', model }) }, store, { clock })
    await heed.start()
    await soon(() => model.callCount).toBe(2)
    await gone.close()
  })
})

import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, silentLogger, type Storage } from '../../src/index.ts'
import { createHandler } from '../../src/http/server.ts'
import { scriptedModel, type ScriptedCall } from '../../src/testing/index.ts'
import { memberWith } from '../cluster/cluster.ts'
import { newFile } from '../new-file.ts'
import { soon } from './said.ts'

const lastText = ({ prompt }: ScriptedCall) => JSON.stringify(prompt.at(-1)?.content).match(/name-\w+/)?.[0] ?? ''

/** A Heed whose runs say which began, and end when they are let go. */
function limited(limits: { runs?: number; waitingRuns?: number }, storage: Storage = new InMemoryStore()) {
  const began: string[] = []
  const gates = new Map<string, () => void>()
  const model = scriptedModel(async (call) => {
    const name = lastText(call)
    began.push(name)
    await new Promise<void>((resolve) => gates.set(name, resolve))
    return 'Done.'
  })
  const agent = new Agent({ id: 'guide', model })
  const heed = new Heed({ agents: { agent }, storage, logger: silentLogger, limits })
  onTestFinished(() => heed.close())
  const send = (name: string, resourceId = 'user-1') => agent.sendMessage(name, { resourceId, threadId: `thread-${name}` })
  const end = (name: string) => gates.get(name)?.()
  return { agent, heed, began, send, end }
}

describe('a limit of runs', () => {
  it('[R13.1] holds: further threads stay in the store with their signals, and run in their order when others have ended', async () => {
    const { agent, began, send, end } = limited({ runs: 2 })
    const sent = ['name-a', 'name-b', 'name-c', 'name-d'].map((name) => send(name))
    await Promise.all(sent.map(({ stored }) => stored))
    await soon(() => began).toEqual(['name-a', 'name-b'])
    const waiting = { resourceId: 'user-1', threadId: 'thread-name-c' }
    expect((await agent.threads().store.getThread(waiting))?.status).toBe('idle')
    expect(await agent.listQueued(waiting)).toHaveLength(1)
    // A second message enters the same run, after the first.
    const more = agent.sendMessage('And name-c2.', waiting)
    await more.stored
    end('name-b')
    await soon(() => began).toEqual(['name-a', 'name-b', 'name-c2'])
    expect(await sent[2]?.outcome).toEqual({ action: 'queued', reason: 'busy', runId: sent[2]?.runId })
    expect(await more.outcome).toMatchObject({ action: 'queued', reason: 'busy' })
    end('name-a')
    await soon(() => began.at(-1)).toBe('name-d')
    end('name-c2')
    end('name-d')
    for (const { threadId } of [waiting, { threadId: 'thread-name-d' }]) {
      await soon(async () => (await agent.threads().store.listRuns({ threadId })).map(({ status }) => status)).toEqual(['finished'])
    }
  })

  it('[R13.1] holds for calls, with a thread and without one', async () => {
    const { agent, began, end } = limited({ runs: 1 })
    const results = [
      agent.generate('name-a', { memory: { thread: 't1', resource: 'u' } }), agent.generate('name-b', { memory: { thread: 't2', resource: 'u' } }),
    ]
    await soon(() => began).toEqual(['name-a'])
    results.push(agent.generate('name-c'))
    end('name-a')
    await soon(() => began.length).toBe(2)
    end(began[1] ?? '')
    await soon(() => began.length).toBe(3)
    end(began[2] ?? '')
    expect((await Promise.all(results)).map(({ text }) => text)).toEqual(['Done.', 'Done.', 'Done.'])
  })

  it('[G1.5] does not keep a call without a thread that is aborted while it waits, and gives its turn to the next', async () => {
    const { agent, began, end } = limited({ runs: 1 })
    const first = agent.generate('name-a')
    await soon(() => began).toEqual(['name-a'])
    const stop = new AbortController()
    const aborted = agent.generate('name-b', { abortSignal: stop.signal })
    const late = agent.generate('name-c', { abortSignal: AbortSignal.abort(new Error('changed my mind')) })
    await expect(late).rejects.toMatchObject({ code: 'aborted', cause: { message: 'changed my mind' } })
    const next = agent.generate('name-d')
    await new Promise((resolve) => setImmediate(resolve))
    stop.abort()
    await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
    expect(began).toEqual(['name-a'])
    end('name-a')
    await first
    await soon(() => began).toEqual(['name-a', 'name-d'])
    end('name-d')
    expect((await next).text).toBe('Done.')
  })

  it('[R13.1] keeps each call that waits without a thread, also those of one run id', async () => {
    const { agent, began, end } = limited({ runs: 1 })
    const first = agent.generate('name-a')
    await soon(() => began).toEqual(['name-a'])
    const calls = ['name-b', 'name-c'].map((name) => agent.generate(name, { runId: 'run-1' }))
    end('name-a')
    await first
    for (const name of ['name-b', 'name-c']) {
      await soon(() => began.at(-1)).toBe(name)
      end(name)
    }
    expect((await Promise.all(calls)).map(({ text }) => text)).toEqual(['Done.', 'Done.'])
  })

  it('[R13.2] is shared in turns: a resource with many threads does not delay another with one', async () => {
    const { began, send, end } = limited({ runs: 1 })
    await Promise.all(['name-a1', 'name-a2', 'name-a3', 'name-a4'].map((name) => send(name, 'a').stored))
    await Promise.all(['name-b1', 'name-b2'].map((name) => send(name, 'b').stored))
    for (let count = 1; count <= 6; count++) {
      await soon(() => began.length).toBe(count)
      end(began.at(-1) ?? '')
    }
    expect(began).toEqual(['name-a1', 'name-a2', 'name-b1', 'name-a3', 'name-b2', 'name-a4'])
  })

  it('[R13.2] is shared between the runs of one thread and others: a long queue is no reason to wait', async () => {
    const { agent, began, send, end } = limited({ runs: 1 })
    const thread = { resourceId: 'a', threadId: 'queue' }
    for (const name of ['name-q1', 'name-q2', 'name-q3']) await agent.queueMessage(name, thread).stored
    await send('name-b1', 'b').stored
    for (let count = 1; count <= 4; count++) {
      await soon(() => began.length).toBe(count)
      end(began.at(-1) ?? '')
    }
    expect(began).toEqual(['name-q1', 'name-b1', 'name-q2', 'name-q3'])
  })

  it('[R13.3] does not count runs for which another run waits: those of a called agent, and of a call in a tool', async () => {
    const below = new Agent({ id: 'below', description: 'Helps.', model: scriptedModel(['Below.', 'Asked.']) })
    const ask = createTool({
      id: 'ask',
      execute: async () => (await below.generate('Go.', { memory: { thread: 'other', resource: 'u' } })).text,
    })
    const model = scriptedModel([
      { toolCalls: [{ toolName: 'agent-below', toolCallId: 'one', input: { prompt: 'Go.' } }] },
      { toolCalls: [{ toolName: 'ask', toolCallId: 'two', input: {} }] },
      'Done.',
    ])
    const above = new Agent({ id: 'above', model, agents: { below }, tools: { ask } })
    const heed = new Heed({ agents: { above, below }, storage: new InMemoryStore(), logger: silentLogger, limits: { runs: 1 } })
    onTestFinished(() => heed.close())
    expect((await above.generate('Go.', { memory: { thread: 't', resource: 'u' } })).text).toBe('Done.')
  })

  it('[R13.4] lets a process with a free slot run a waiting thread', async () => {
    const file = newFile()
    const full = await memberWith(file, { HEED_RUNS: '1' })
    await full.ask('send', 'one hang', { resourceId: 'u', threadId: 'long' })
    await soon(async () => (await full.ask('activeRun', { threadId: 'long' }))?.status).toBe('running')
    const free = await memberWith(file, {})
    const { id } = await full.ask('send', 'two say 2', { resourceId: 'u', threadId: 'short' })
    expect(await full.ask('outcome', id)).toMatchObject({ action: 'queued', reason: 'busy' })
    await soon(async () => (await free.ask('calls')).map(({ about }) => about)).toEqual(['two'])
  })
})

describe('a server with too many waiting threads', () => {
  it('[H7.11] answers 429 with Retry-After, leaves nothing behind, and still delivers to active runs', async () => {
    const { agent, heed, began, send, end } = limited({ runs: 1, waitingRuns: 1 })
    const handler = createHandler(heed, { auth: 'local' })
    const post = (path: string, body: object) => handler(new Request(`http://localhost/api/agents/guide/${path}`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
    }))
    const message = (name: string) => post('send-message', { message: name, resourceId: 'user-1', threadId: `thread-${name}` })
    const first = send('name-a')
    await soon(() => began).toEqual(['name-a'])
    expect((await message('name-b')).status).toBe(200)
    const refused = await message('name-c')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '5'])
    expect(await refused.json()).toMatchObject({ code: 'overloaded', retryable: true })
    expect(await agent.threads().store.getThread({ threadId: 'thread-name-c' })).toBeNull()
    const call = await post('generate', { messages: 'name-d', memory: { thread: 'thread-name-d', resource: 'user-1' } })
    expect([call.status, await agent.threads().store.getThread({ threadId: 'thread-name-d' })]).toEqual([429, null])
    expect((await post('generate', { messages: 'name-e' })).status).toBe(429)
    expect((await message('name-a')).status).toBe(200)
    for (const name of ['name-a', 'name-a', 'name-b']) {
      await soon(() => began.at(-1)).toBe(name)
      end(name)
      if (name === 'name-a') await soon(() => began.filter((one) => one === 'name-a').length).toBe(2)
    }
    expect(await first.outcome).toMatchObject({ action: 'woke' })
    expect((await message('name-c')).status).toBe(200)
    await soon(() => began.at(-1)).toBe('name-c')
    // A program is not refused: it knows what it sends. Beyond the limit the sweep finds it.
    await Promise.all([send('name-d').stored, send('name-e').stored])
    expect(await send('name-f').outcome).toMatchObject({ action: 'queued', reason: 'busy' })
    end('name-c')
  })
})

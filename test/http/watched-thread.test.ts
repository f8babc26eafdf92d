import { describe, expect, it, onTestFinished } from 'vitest'
import { olderThan } from '../../src/client/view/thread-view.ts'
import { HeedClient } from '../../src/client/index.ts'
import { WatchedThread } from '../../src/client/react/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const texts = (watched: WatchedThread) => watched.getSnapshot().messages.map(({ role, parts }) => `${role}: ${parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')}`)
const guide = () => new Agent({ id: 'guide', model: scriptedModel(['Ok.'], { loop: true }) })

function watch(client: HeedClient): WatchedThread {
  const watched = new WatchedThread(client.getAgent('guide'), thread)
  onTestFinished(watched.subscribe(() => {}))
  return watched
}

describe('a thread that a display watches', () => {
  it.each(['a send that works', 'time'])('[U1.11] is shown again after the server refused it, through %s', async (how) => {
    const { server } = await served({ guide: guide() }, { auth: apiKeys({ 'a-key-that-is-good': { id: 'u', resources: [thread.resourceId] } }) })
    let key = 'one-that-is-not'
    const watched = watch(new HeedClient({ baseUrl: server.url, headers: () => ({ authorization: `Bearer ${key}` }) }))
    await expect.poll(() => watched.getSnapshot()).toMatchObject({ connection: 'lost', connectionError: expect.any(String) })
    key = 'a-key-that-is-good'
    if (how === 'time') await new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${key}` } }).getAgent('guide').sendMessage({ message: 'Hi.', ...thread })
    else await watched.send('Hi.')
    await expect.poll(() => texts(watched)).toEqual(['user: Hi.', 'assistant: Ok.'])
    expect(watched.getSnapshot()).toMatchObject({ connection: 'live', connectionError: null, sendError: null })
  })

  it('[U1.11] is live as soon as a connection that broke is there again, though nothing happens', async () => {
    const { server } = await served({ guide: guide() })
    const broken = Promise.withResolvers<void>()
    let subscriptions = 0
    const fragile: typeof fetch = async (input, init) => {
      const response = await fetch(input, init)
      if (!String(input).endsWith('/subscribe') || subscriptions++ > 0 || !response.body) return response
      const body = response.body.pipeThrough(new TransformStream({ start: (controller) => void broken.promise.then(() => controller.error(new Error('cut'))) }))
      return new Response(body, { headers: response.headers })
    }
    const watched = watch(new HeedClient({ baseUrl: server.url, fetch: fragile }))
    await watched.send('Hi.')
    await expect.poll(() => [...texts(watched), watched.getSnapshot().status]).toEqual(['user: Hi.', 'assistant: Ok.', 'idle'])
    const seen: string[] = []
    onTestFinished(watched.subscribe(() => seen.push(watched.getSnapshot().connection)))
    broken.resolve()
    await expect.poll(() => [...new Set(seen)]).toEqual(['lost', 'live'])
    expect(subscriptions).toBe(2)
  })

  it('[U1.16] shows chunks that arrive together once a frame, and the last of them without a further chunk', async () => {
    const { server } = await served({ guide: guide() })
    const words = Array.from({ length: 500 }, (_, index) => `word${index} `)
    const chunk = (type: string, payload: object) => `data: ${JSON.stringify({ type, runId: 'r', from: 'AGENT', payload })}\n\n`
    const together: typeof fetch = async (input, init) => {
      if (!String(input).endsWith('/subscribe')) return fetch(input, init)
      const deltas = words.map((text) => chunk('text-delta', { id: 't', text }))
      const frames = [chunk('start', {}), chunk('step-start', { messageId: 'm', stepIndex: 0 }), chunk('text-start', { id: 't' }), ...deltas]
      return new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(frames.join(''))) }))
    }
    const watched = new WatchedThread(new HeedClient({ baseUrl: server.url, fetch: together }).getAgent('guide'), thread)
    let shown = 0
    onTestFinished(watched.subscribe(() => (shown += 1)))
    await expect.poll(() => texts(watched)).toEqual([`assistant: ${words.join('')}`])
    expect(shown).toBeLessThan(100)
  })

  it('[U1.9] shows what is sent as it will be: under the id that it was given, with its files, once', async () => {
    const agent = guide()
    const { client } = await served({ guide: agent })
    const watched = watch(client)
    await expect.poll(() => watched.getSnapshot().connection).toBe('live')
    const contents = [{ type: 'text' as const, text: 'Look.' }, { type: 'file' as const, data: 'aGk=', mediaType: 'text/plain', filename: 'hi.txt' }]
    const sending = [watched.send({ id: 'mine-1', contents }), watched.send({ id: 'mine-1', contents })]
    const optimistic = watched.getSnapshot().messages
    expect(optimistic).toMatchObject([{ id: 'mine-1', metadata: { optimistic: true } }])
    await Promise.all(sending)
    await expect.poll(() => texts(watched)).toEqual(['user: Look.', 'assistant: Ok.'])
    const [first] = watched.getSnapshot().messages
    expect([first?.id, first?.parts, first?.metadata?.optimistic]).toEqual(['mine-1', optimistic[0]?.parts, undefined])
  })

  it('[U1.9] keeps what could not be sent, with the reason, until it is sent again, is discarded, or is found in the thread', async () => {
    const { server } = await served({ guide: guide() })
    let away: 'there' | 'away' | 'answer lost' = 'there'
    const fragile: typeof fetch = async (input, init) => {
      const isSend = /-message/.test(String(input))
      if (isSend && away === 'away') throw new TypeError('fetch failed')
      const response = await fetch(input, init)
      if (isSend && away === 'answer lost') throw new TypeError('fetch failed')
      return response
    }
    const watched = watch(new HeedClient({ baseUrl: server.url, fetch: fragile, retries: 0 }))
    await expect.poll(() => watched.getSnapshot().connection).toBe('live')
    const unsent = () => watched.getSnapshot().messages.flatMap(({ metadata }) => (metadata?.sendError === undefined ? [] : [metadata.sendError]))
    away = 'away'
    // No code handles these: the state has the reasons.
    void watched.send({ id: 'm1', contents: 'One.' })
    void watched.queue({ id: 'm2', contents: 'Two.' })
    const reason = expect.stringContaining('did not respond')
    await expect.poll(unsent).toEqual([reason, reason])
    expect([texts(watched), watched.getSnapshot().sendError]).toEqual([['user: One.', 'user: Two.'], reason])
    await expect(watched.retry('m1')).rejects.toMatchObject({ code: 'unreachable' })
    away = 'there'
    await watched.retry('m1')
    await expect.poll(() => texts(watched)).toEqual(['user: One.', 'assistant: Ok.', 'user: Two.'])
    expect(watched.getSnapshot().sendError).toBeNull()
    watched.discard('m2')
    expect(texts(watched)).toEqual(['user: One.', 'assistant: Ok.'])
    expect(() => watched.discard('m2')).toThrow(expect.objectContaining({ code: 'message_not_found' }))
    away = 'answer lost'
    void watched.send({ id: 'm3', contents: 'Three.' })
    await expect.poll(() => [texts(watched), unsent(), watched.getSnapshot().sendError]).toEqual([['user: One.', 'assistant: Ok.', 'user: Three.', 'assistant: Ok.'], [], null])
  })

  it('[U1.7] a call that waits is asked about in the message too, from a snapshot on; what is decided here waits no longer', async () => {
    const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'pay', input: { n: 1 } }, { toolName: 'pay', input: { n: 2 } }] }, 'Paid.']), tools: { pay } })
    const { client } = await served({ guide: agent })
    agent.sendMessage('Pay.', thread)
    await expect.poll(() => agent.activeRun(thread)).toMatchObject({ status: 'suspended' })
    const watched = watch(client)
    const states = () => watched.getSnapshot().messages.at(-1)?.parts.flatMap((part) => ('state' in part ? [part.state] : []))
    const waiting = () => watched.getSnapshot().approvals.map(({ toolCallId }) => toolCallId)
    await expect.poll(states).toEqual(['approval-requested', 'approval-requested'])
    await watched.approve('call_0_0')
    expect([states(), waiting(), watched.getSnapshot().status]).toEqual([['approval-responded', 'approval-requested'], ['call_0_1'], 'suspended'])
    await expect(watched.decline('call_0_0')).rejects.toMatchObject({ code: 'run_not_suspended' })
    await watched.decline('call_0_1', 'Too dear.')
    await expect.poll(() => [states(), waiting(), watched.getSnapshot().status]).toEqual([['output-available', 'output-denied'], [], 'idle'])
  })

  it('[U1.10] keeps what is older than a view, and only where the two join', () => {
    const ids = (...names: string[]) => names.map((id) => ({ id, role: 'user' as const, parts: [] }))
    const view = (hasOlder: boolean, ...names: string[]) => ({ hasOlder, messages: ids(...names) })
    expect(olderThan(view(true, 'c', 'd'), ids('a', 'b', 'c'))).toEqual(ids('a', 'b'))
    expect(olderThan(view(false, 'c', 'd'), ids('a', 'b', 'c'))).toEqual([])
    expect(olderThan(view(true, 'x', 'y'), ids('a', 'b', 'c'))).toEqual([])
    expect(olderThan(view(true), ids('a'))).toEqual([])
  })

  it('[U1.10] loads older messages page by page, each once, however often it is asked', async () => {
    const agent = guide()
    const { client } = await served({ guide: agent })
    for (let n = 0; n < 120; n++) await agent.generate(`${n}`, { memory: { thread: thread.threadId, resource: thread.resourceId } })
    const watched = watch(client)
    await expect.poll(() => watched.getSnapshot()).toMatchObject({ connection: 'live', hasOlder: true })
    await Promise.all([watched.loadOlder(), watched.loadOlder()])
    expect(watched.getSnapshot()).toMatchObject({ hasOlder: true, messages: { length: 200 } })
    await watched.loadOlder()
    await watched.loadOlder()
    expect(watched.getSnapshot().hasOlder).toBe(false)
    expect(texts(watched)).toEqual(Array.from({ length: 120 }, (_, n) => [`user: ${n}`, 'assistant: Ok.']).flat())
  })
})

import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { expect } from 'vitest'
import type { ClientOptions } from '../../../src/client/index.ts'
import type { Thread } from '../../../src/client/react/index.ts'
import { served, thread } from '../../http/serving.ts'
import { rejects, type Probe } from '../probe.ts'
import { aiSdk, client, heed, react, testing } from '../walked.ts'

const { answersWhatWaits, HeedChatTransport } = aiSdk
const { HeedClient } = client
const { useThread, WatchedThread } = react
const { Agent } = heed
const { scriptedModel } = testing

interface Asked {
  url: string
  headers: Record<string, string>
  body: Record<string, unknown>
}

/** Options of a client, and the requests that it makes. */
function recorded(more: Partial<ClientOptions> = {}) {
  const asked: Asked[] = []
  const options: ClientOptions = {
    baseUrl: 'http://localhost:1',
    fetch: async (input, init) => {
      asked.push({ url: String(input), headers: init?.headers as Record<string, string>, body: JSON.parse(String(init?.body ?? '{}')) as Asked['body'] })
      return new Response('{}')
    },
    ...more,
  }
  return { asked, options }
}

function rendered(options: Parameters<typeof useThread>[0]): Thread {
  let shown: Thread | undefined
  renderToString(createElement(() => ((shown = useThread(options)), null)))
  if (!shown) throw new Error('The component was not rendered.')
  return shown
}

const message = (id: string, text: string) => ({ id, role: 'user' as const, parts: [{ type: 'text', text }] })

export const pages: Probe[] = [
  {
    title: 'the options of a client',
    async run() {
      const { asked, options } = recorded({ baseUrl: 'http://localhost:7/', apiPrefix: '/v1', headers: () => ({ 'x-key': 'k' }) })
      await new HeedClient(options).health()
      expect(asked[0]).toMatchObject({ url: 'http://localhost:7/v1/health', headers: { 'x-key': 'k' } })
      let attempts = 0
      const failing = { baseUrl: 'http://localhost:1', fetch: () => ((attempts += 1), Promise.reject(new Error('away'))) }
      await expect(new HeedClient({ ...failing, retries: 1 }).health()).rejects.toMatchObject({ code: 'unreachable' })
      expect(attempts).toBe(2)
      const silent: typeof fetch = (_, init) => new Promise((_resolve, reject) => {
        if (init?.signal?.aborted) reject(init.signal.reason)
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason))
      })
      const late = await new HeedClient({ ...failing, retries: 0, timeoutMs: 1, fetch: silent }).health().catch((error: unknown) => error)
      expect(late).toMatchObject({ details: { timeoutMs: 1 } })
      const stopped = await new HeedClient({ ...options, signal: AbortSignal.abort(new Error('stopped')), fetch: silent }).health().catch((error: unknown) => error)
      expect(stopped).toBeInstanceOf(Error)
      for (const [more, name] of [
        [{ baseUrl: undefined }, 'baseUrl'], [{ headers: 'x' }, 'headers'], [{ apiPrefix: 1 }, 'apiPrefix'], [{ retries: -1 }, 'retries'], [{ timeoutMs: 0 }, 'timeoutMs'],
        [{ silenceMs: 0 }, 'silenceMs'], [{ fetch: 1 }, 'fetch'], [{ signal: {} }, 'signal'],
      ] as const) await rejects(() => new HeedClient({ ...options, ...more } as never), name)
    },
  },
  {
    title: 'the options of a thread in a page',
    async run() {
      const { asked, options } = recorded()
      const choice = { ifActive: { behavior: 'persist', attributes: { a: 1 } }, ifIdle: { behavior: 'wake', attributes: { b: 2 }, streamOptions: { maxSteps: 2 } } } as const
      for (const given of [{ agent: 'guide', client: options }, { agent: 'guide', client: new HeedClient(options) }, { agent: new HeedClient(options).getAgent('guide') }]) {
        asked.length = 0
        const shown = rendered({ ...thread, ...given })
        await shown.send('Hi.', choice)
        expect(asked[0]).toMatchObject({ url: 'http://localhost:1/api/agents/guide/send-message', body: { ...thread, ...choice } })
      }
      asked.length = 0
      await new WatchedThread(new HeedClient(options).getAgent('guide'), thread).abort({ clearPendingSignals: true })
      expect(asked[0]?.body).toEqual({ ...thread, clearPendingSignals: true })
    },
  },
  {
    title: 'the options of a chat',
    async run() {
      const gate = Promise.withResolvers<void>()
      const model = scriptedModel(({ index }) => (index > 0 ? { text: 'Slow.', gate: gate.promise } : 'Fine.'))
      const { client } = await served({ guide: new Agent({ id: 'guide', model }) })
      const agent = client.getAgent('guide')
      const transport = new HeedChatTransport({ agent, resourceId: thread.resourceId })
      const chatId = thread.threadId
      const read = async (stream: ReadableStream<{ type: string }> | null) => {
        const types: string[] = []
        for await (const { type } of stream ?? []) types.push(type)
        return types
      }
      expect(await read(await transport.sendMessages({ trigger: 'submit-message', chatId, messages: [message('m-1', 'Hi.')] }))).toContain('finish')
      expect((await client.memory({ resourceId: thread.resourceId }).listMessages({ threadId: chatId })).messages.map(({ id }) => id)).toContain('m-1')
      await rejects(() => transport.sendMessages({ trigger: 'regenerate-message', chatId, messages: [message('m-1', 'Hi.')] }), 'regenerated')
      const stop = new AbortController()
      const slow = await transport.sendMessages({ trigger: 'submit-message', chatId, messages: [message('m-2', 'Go.')], abortSignal: stop.signal })
      const queued = await transport.sendMessages({ trigger: 'submit-message', chatId, messages: [message('m-3', 'Later.')], body: { queue: true } })
      expect(await agent.listQueued(thread)).toMatchObject([{ id: 'm-3', kind: 'turn' }])
      expect(await transport.reconnectToStream({ chatId: 'none' })).toBeNull()
      const aborted = async () => (await agent.listRuns(thread)).runs.filter(({ status }) => status === 'aborted').length
      stop.abort()
      await expect.poll(aborted).toBe(1)
      const again = new AbortController()
      await expect.poll(async () => (await agent.activeRun(thread))?.status).toBe('running')
      expect(await transport.reconnectToStream({ chatId, abortSignal: again.signal })).not.toBeNull()
      again.abort()
      await expect.poll(aborted).toBe(2)
      gate.resolve()
      await Promise.all([read(slow), read(queued)])
      expect(answersWhatWaits({ messages: [message('m-1', 'Hi.')] })).toBe(false)
      for (const more of [{ headers: { a: 'b' } }, { metadata: { a: 1 } }])
        await rejects(() => transport.sendMessages({ trigger: 'submit-message', chatId, messages: [message('m-4', 'x')], ...more }), Object.keys(more)[0] ?? '')
    },
  },
]

import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { expect } from 'vitest'
import type { ClientOptions } from '../../../src/client/index.ts'
import type { Thread } from '../../../src/client/react/index.ts'
import { thread } from '../../http/serving.ts'
import type { Probe } from '../probe.ts'
import { aiSdk, client, react } from '../walked.ts'

interface Asked {
  url: string
  method: string
  headers: Record<string, string>
  body: Record<string, unknown>
}

/** Options of a client, and the requests that it makes, each with an empty answer. */
function recorded(more: Partial<ClientOptions> = {}) {
  const asked: Asked[] = []
  const options: ClientOptions = {
    baseUrl: 'http://localhost:1',
    fetch: async (input, init) => {
      const headers = init?.headers as Record<string, string>
      asked.push({ url: String(input), method: init?.method ?? 'GET', headers, body: JSON.parse(String(init?.body ?? '{}')) as Asked['body'] })
      return new Response('{}')
    },
    ...more,
  }
  return { asked, options }
}

function rendered(options: Parameters<typeof react.useThread>[0]): Thread {
  let shown: Thread | undefined
  renderToString(createElement(() => ((shown = react.useThread(options)), null)))
  if (!shown) throw new Error('The component was not rendered.')
  return shown
}

const message = { id: 'm-1', contents: 'Hi.', attributes: { a: 1 }, metadata: { b: 2 }, providerOptions: { x: { y: 1 } } }
const choice = { ifActive: { behavior: 'persist', attributes: { a: 1 } }, ifIdle: { behavior: 'wake', attributes: { b: 2 }, streamOptions: { maxSteps: 2 } } } as const
export const displays: Probe[] = [
  {
    title: 'useThread: its thread, agent and client',
    async run() {
      const { asked, options } = recorded({ baseUrl: 'http://localhost:7', apiPrefix: '/v1', headers: { 'x-key': 'k' } })
      await rendered({ ...thread, agent: 'guide', client: options }).send('Hi.')
      expect(asked[0]).toMatchObject({ url: 'http://localhost:7/v1/agents/guide/send-message', headers: { 'x-key': 'k' }, body: thread })
      let attempts = 0
      const away = () => ((attempts += 1), Promise.reject(new Error('away')))
      const failing = rendered({ ...thread, agent: 'guide', client: { baseUrl: 'http://localhost:1', retries: 1, fetch: away } })
      await failing.send('Hi.').catch(() => {})
      expect(attempts).toBe(2)
      for (const [option, value] of Object.entries({ silenceMs: 0, timeoutMs: 0, signal: {} }))
        expect(() => rendered({ ...thread, agent: 'guide', client: { ...options, [option]: value } as never })).toThrow(option)
    },
  },
  {
    title: 'WatchedThread: its thread, and what it sends',
    async run() {
      const { asked, options } = recorded()
      const watched = new react.WatchedThread(new client.HeedClient(options).getAgent('guide'), thread)
      await watched.send(message, choice)
      await watched.queue(message)
      await watched.abort({ clearPendingSignals: true })
      expect(asked.filter(({ method }) => method === 'POST').map(({ body }) => body)).toMatchObject([
        { ...thread, message, ...choice }, { ...thread, message }, { ...thread, clearPendingSignals: true },
      ])
    },
  },
  {
    title: 'answersWhatWaits: its messages',
    async run() {
      const part = (state: string) => ({ type: 'tool-pay', toolCallId: 'c', state, input: {}, approval: { id: 'a', approved: true } })
      const messages = (state: string) => [{ id: 'm', role: 'assistant' as const, parts: [part(state)] }]
      expect(['approval-responded', 'approval-requested'].map((state) => aiSdk.answersWhatWaits({ messages: messages(state) as never }))).toEqual([true, false])
    },
  },
]

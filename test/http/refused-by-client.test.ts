import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { describe, expect, it } from 'vitest'
import { HeedChatTransport } from '../../src/client/ai-sdk/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { useThread, WatchedThread } from '../../src/client/react/index.ts'
import { thread } from './serving.ts'

/** A client whose server must not be asked. */
const unasked = new HeedClient({ baseUrl: 'http://localhost', retries: 0, fetch: () => Promise.reject(new Error('The server was asked.')) })
const agent = unasked.getAgent('guide')
const refused = (field: string) => ({ name: 'HeedError', code: 'invalid_argument', message: expect.stringContaining(field) as string })
const thrown = (call: () => unknown): unknown => {
  try {
    return call()
  } catch (error) {
    return error
  }
}

describe('a page without its agent or its thread', () => {
  it.each<[field: string, make: () => unknown]>([
    ['HeedChatTransport: agent', () => new HeedChatTransport({} as never)],
    ['HeedChatTransport: agent', () => new HeedChatTransport({ agent: 'guide' as never })],
    ['HeedChatTransport: resourceId', () => new HeedChatTransport({ agent, resourceId: '' })],
    ['WatchedThread: agent', () => new WatchedThread(undefined as never, thread)],
    ['WatchedThread: threadId', () => new WatchedThread(agent, {} as never)],
    ['WatchedThread: resourceId', () => new WatchedThread(agent, { ...thread, resourceId: 7 as never })],
    ['useThread(): agent', () => renderToString(createElement(() => (useThread({ ...thread, agent: undefined as never }), null)))],
  ])('[U1.15] is rejected when it is made, with the name of what is missing: %s', (field, make) => {
    expect(thrown(make)).toMatchObject(refused(field))
  })
})

describe('a filter of a client that is no list', () => {
  it.each<[field: string, ask: () => Promise<unknown>]>([
    ['state', () => agent.listSignals({ ...thread, state: 'taken' as never })],
    ['status', () => agent.notifications.list({ ...thread, status: 'seen' as never })],
    ['priority', () => agent.notifications.list({ ...thread, priority: 'urgent' as never })],
    ['status', () => unasked.listNotifications({ status: 'seen' as never })],
    ['priority', () => unasked.listNotifications({ priority: 'urgent' as never })],
  ])('[H6.11] is rejected by name, without a request: %s', async (field, ask) => {
    await expect(ask()).rejects.toMatchObject({ ...refused(field), details: { field } })
  })
})

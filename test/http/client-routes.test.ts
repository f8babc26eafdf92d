import { expect, it } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { createHandler } from '../../src/http/server.ts'
import { Agent, Heed, InMemoryStore } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

/** Older names of other routes, and what isn't asked by clients. */
const others = [
  'POST /agents/{agentId}/stream-until-idle', 'POST /agents/{agentId}/resume-stream-until-idle', 'GET /agents/{agentId}/threads/{threadId}/subscribe', 'POST /webhooks/{sourceId}', 'POST /channels/{channelId}', 'GET /openapi.json',
  'GET /memory/observational-memory', 'GET /agents/{agentId}/speakers', 'POST /agents/{agentId}/speak', 'POST /agents/{agentId}/listen',
  // The AI SDK's own transport is their client.
  'POST /agents/{agentId}/chat', 'GET /agents/{agentId}/chat/{threadId}/stream',
  // The platform's own WebSocket opens it.
  'GET /agents/{agentId}/threads/{threadId}/voice',
]
/** Routes of existing clients, beside those that the client asks. */
const existing = /^\w+ \/(stored\/agents|scores\/(run|scorer|entity)\/|scores\/scorers\/|workflows\/run-counts$|workflows\/\{workflowId\}\/(create-run|observe|restart|resume|start-async|time-travel))/

it('[H1.5] the client has a call for everything that the server can be asked', async () => {
  const heed = new Heed({ agents: { guide: new Agent({ id: 'guide', model: scriptedModel([]) }) }, storage: new InMemoryStore() })
  const handler = createHandler(heed, { auth: 'local' })
  const { paths } = (await (await handler(new Request('http://localhost/api/openapi.json'))).json()) as { paths: Record<string, Record<string, unknown>> }
  await heed.close()
  const asked: string[] = []
  const client = new HeedClient({
    baseUrl: 'http://localhost',
    retries: 0,
    fetch: (url, init) => {
      asked.push(`${init?.method} ${new URL(String(url)).pathname.slice('/api'.length)}`)
      return Promise.reject(new Error('only counted'))
    },
  })
  const guide = client.getAgent('guide')
  const memory = client.memory()
  const thread = { threadId: 't', resourceId: 'r' }
  const workflow = client.getWorkflow('asking')
  for (const holder of [client, guide, guide.notifications, guide.schedules, memory, workflow, workflow.createRun(), guide.editor, client.prompts(), guide.voice] as object[]) {
    for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(holder))) {
      const call = (holder as Record<string, unknown>)[name]
      if (name === 'constructor' || typeof call !== 'function') continue
      // Calls take one object with names, or a name, or messages: what is asked for is in the path.
      for (const argument of [{ ...thread, id: 'x', runId: 'x', notificationId: 'x', scheduleId: 'x', signalId: 'x', watch: {}, sourceThreadId: 't', signalIds: [], messages: [], messageIds: [], message: 'x', signal: {}, state: {}, notification: {}, notifications: [], step: 'x', from: 0, to: 1, reconnect: false }, { watchId: 'x', reconnect: false }, 't', 1]) {
        const given: unknown = typeof argument === 'object' ? { ...argument } : argument
        // Some calls ask another route where the options name a version.
        const options = typeof argument === 'string' ? { runId: 'x' } : { runId: 'x', base: 0, version: 1, expected: 0, as: 'y', from: 0, to: 1, content: 'x' }
        // The connection rejects everything; what was asked is noted. A name that the call does not have is left out.
        for (let unknown: string | undefined = ''; unknown !== undefined;) {
          if (typeof given === 'object') Reflect.deleteProperty(given ?? {}, unknown)
          Reflect.deleteProperty(options, unknown)
          unknown = await (async () => {
            const answer = (call as (...args: unknown[]) => unknown).call(holder, given, options)
            // A stream asks when it is read.
            return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer ? (answer as AsyncGenerator).next() : answer
          })().then(
            () => undefined,
            (error: { code?: string; details?: { option?: string } }) => (error.code === 'unsupported_option' ? error.details?.option : undefined),
          )
        }
      }
    }
  }
  const patterns = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.slice('/api'.length)}`))
  const isAsked = (pattern: string) => asked.some((one) => new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(one))
  expect(patterns.filter((pattern) => !isAsked(pattern) && !others.includes(pattern) && !existing.test(pattern))).toEqual([])
})

it('[H1.5] the calls for operators and about a memory are answered', async () => {
  const { client } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) })
  expect([await client.health(), await client.ready()]).toEqual([{ status: 'ok' }, { status: 'ready' }])
  expect(await client.metrics()).toContain('heed_event_streams 0')
  expect([await client.memory().status(), (await client.memory().config()).lastMessages]).toEqual([true, 10])
})

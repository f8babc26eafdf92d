import { HeedError } from '../../base/errors.ts'
import { packageVersion } from '../../base/package-version.ts'
import type { Heed } from '../../heed/heed.ts'
import type { ProcessRow } from '../../store/contract/threads.ts'
import { isOperator } from '../auth/principal.ts'
import { hasScope, principalScopes } from '../auth/scopes.ts'
import { memoryAgent, type MemoryQuery } from '../request/access.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type JSONSchema, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { id, object } from '../schema/schemas.ts'
import type { EventStreams } from '../sse/event-stream.ts'

export interface Operations {
  metrics: Metrics
  openApi: () => JSONSchema
}

const tick = object({ limit: { type: 'integer', minimum: 1, maximum: 10_000 }, timeoutMs: { type: 'integer', minimum: 0 } })

/** Routes for those who operate the server. */
export function operations({ metrics, openApi }: Operations): Route[] {
  return [
    route({
      method: 'GET',
      path: '/health',
      summary: 'The process is alive',
      response: 'json',
      responseSchema: responses.alive,
      anonymous: true,
      unlimited: true,
      handle: () => ({ status: 'ok' }),
    }),
    route({
      method: 'GET',
      path: '/ready',
      summary: 'All agents are registered, their storages respond, and what is due is sent',
      response: 'json',
      responseSchema: responses.ready,
      anonymous: true,
      unlimited: true,
      async handle({ heed }) {
        try {
          await heed.begin()
          // A storage that other code closed is opened again.
          for (const agent of Object.values(heed.listAgents())) if (!agent.storageDependsOnRequest) agent.threads()
          await Promise.all(
            heed.sites.all().map(async ({ threads }) => {
              await threads.open()
              if (threads.lease.failure) throw threads.lease.failure
              // A storage may have failed since it was opened: only a query shows whether it responds.
              await threads.store.findRun('readiness-probe')
            }),
          )
        } catch (cause) {
          throw new HeedError('store_failed', 'Not ready: the storage does not respond.', { cause, retryable: true })
        }
        return { status: 'ready' }
      },
    }),
    route({
      method: 'GET',
      path: '/me',
      summary: 'The principal of this request, what it may do, and the version of the server',
      response: 'json',
      responseSchema: responses.me,
      read: true,
      handle({ principal }) {
        const { id, resources } = principal
        const scopes = principalScopes.operator.filter((scope) => hasScope(principal, scope))
        return { id, resources, operator: isOperator(principal), scopes, version: packageVersion() }
      },
    }),
    route<never, MemoryQuery>({
      method: 'GET',
      path: '/processes',
      summary: 'The processes on the storage of an agent, and those that ended within a week',
      response: 'json',
      responseSchema: responses.processes,
      read: true,
      query: object({ agentId: id }),
      async handle(call) {
        const runtime = (await memoryAgent(call)).threads()
        await runtime.open()
        const found = await runtime.store.listProcesses()
        return { processes: found.map(processOf) }
      },
    }),
    route<{ limit?: number; timeoutMs?: number }>({
      method: 'POST',
      path: '/tick',
      summary: 'Does the work that is due, for servers that do not keep running',
      response: 'json',
      responseSchema: responses.ticked,
      body: tick,
      handle: ({ heed, body: { limit, timeoutMs } }) => heed.tick(omitUndefined({ limit, timeoutMs })),
    }),
    route({
      method: 'GET',
      path: '/metrics',
      summary: 'Counters for operators, in the text format of Prometheus',
      response: 'text',
      handle: ({ heed }) => new Response(metrics.text(heed), { headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } }),
    }),
    route({
      method: 'GET',
      path: '/openapi.json',
      summary: 'This document',
      response: 'json',
      responseSchema: responses.openApiDocument,
      anonymous: true,
      handle: () => openApi(),
    }),
  ]
}

function processOf({ startedAt, seenAt, expiresAt, endedAt, ...process }: ProcessRow): Record<string, unknown> {
  const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms))
  const times = { startedAt: time(startedAt), seenAt: time(seenAt), expiresAt: time(expiresAt), endedAt: time(endedAt) }
  return { ...process, ...omitUndefined(times) }
}

/** Counters for operators, in the text format of Prometheus. */
export class Metrics {
  readonly #events: EventStreams
  readonly #requests = new Map<string, number>()

  constructor(events: EventStreams) {
    this.#events = events
  }

  count(method: string, status: number): void {
    const labels = `method="${methods.has(method) ? method : 'other'}",status="${status}"`
    this.#requests.set(labels, (this.#requests.get(labels) ?? 0) + 1)
  }

  text(heed: Heed): string {
    const running = heed.sites.all().reduce((sum, { threads }) => sum + threads.hosts().length, 0)
    return [
      '# TYPE heed_http_requests_total counter',
      ...[...this.#requests].map(([labels, count]) => `heed_http_requests_total{${labels}} ${count}`),
      '# TYPE heed_event_streams gauge',
      `heed_event_streams ${this.#events.size}`,
      '# TYPE heed_threads_running gauge',
      `heed_threads_running ${running}`,
      '# TYPE process_resident_memory_bytes gauge',
      `process_resident_memory_bytes ${process.memoryUsage.rss()}`,
      '',
    ].join('\n')
  }
}

/** The only methods that become labels: a client's invented method must not grow the map. */
const methods: ReadonlySet<string> = new Set(['GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS', 'HEAD'])

import { HeedError } from '../../base/errors.ts'
import { requireOperator } from '../auth/principal.ts'
import type { Metrics } from '../metrics.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type JSONSchema, type Route } from '../route.ts'
import { closed } from '../schema/schemas.ts'

export interface Operations {
  metrics: Metrics
  openApi: () => JSONSchema
}

const tick = closed({ limit: { type: 'integer', minimum: 1, maximum: 10_000 }, timeoutMs: { type: 'integer', minimum: 0 } })

/** Routes for those who operate the server. */
export function operations({ metrics, openApi }: Operations): Route[] {
  return [
    route({
      method: 'GET',
      path: '/health',
      summary: 'The process is alive',
      response: 'json',
      anonymous: true,
      unlimited: true,
      handle: () => ({ status: 'ok' }),
    }),
    route({
      method: 'GET',
      path: '/ready',
      summary: 'The storage responds and requests are accepted',
      response: 'json',
      anonymous: true,
      unlimited: true,
      async handle({ heed }) {
        try {
          // Creates the sites of agents that no request has used yet.
          for (const agent of Object.values(heed.listAgents())) if (!agent.storageDependsOnRequest) agent.threads()
          await Promise.all(
            heed.sites.all().map(async ({ threads }) => {
              await threads.open()
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
    route<{ limit?: number; timeoutMs?: number }>({
      method: 'POST',
      path: '/tick',
      summary: 'Does the work that is due, for servers that do not keep running',
      response: 'json',
      body: tick,
      handle({ heed, principal, body: { limit, timeoutMs } }) {
        requireOperator(principal)
        return heed.tick(omitUndefined({ limit, timeoutMs }))
      },
    }),
    route({
      method: 'GET',
      path: '/metrics',
      summary: 'Counters for operators, in the text format of Prometheus',
      response: 'json',
      handle({ heed, principal }) {
        requireOperator(principal)
        return new Response(metrics.text(heed), { headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } })
      },
    }),
    route({ method: 'GET', path: '/openapi.json', summary: 'This document', response: 'json', anonymous: true, handle: () => openApi() }),
  ]
}

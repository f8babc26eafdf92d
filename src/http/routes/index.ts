import type { Metrics } from '../metrics.ts'
import { requireOperator } from '../auth/principal.ts'
import { route, type JSONSchema, type Route } from '../route.ts'
import { agents } from './agents.ts'
import { approvals } from './approvals.ts'
import { calls } from './calls.ts'
import { clones } from './clones.ts'
import { lanes } from './lanes.ts'
import { memorySetup } from './memory-setup.ts'
import { messages } from './messages.ts'
import { notifications } from './notifications.ts'
import { operations } from './operations.ts'
import { queue } from './queue.ts'
import { runs } from './runs.ts'
import { schedules } from './schedules.ts'
import { search } from './search.ts'
import { sending } from './sending.ts'
import { threads } from './threads.ts'
import { watching } from './watching.ts'
import { webhooks } from './webhooks.ts'
import { workingMemory } from './working-memory.ts'

/** Everything the server can be asked. */
export function routes({ metrics, openApi }: { metrics: Metrics; openApi: () => JSONSchema }): Route[] {
  return [
    ...agents, ...sending, ...watching, ...queue, ...lanes, ...notifications, ...schedules, ...approvals, ...runs, ...calls, ...threads, ...clones, ...messages, ...search, ...workingMemory, ...memorySetup, ...webhooks, ...operations,
    route({
      method: 'GET', path: '/metrics', summary: 'Counters for operators, in the text format of Prometheus', answer: 'json',
      handle({ heed, principal }) {
        requireOperator(principal)
        return new Response(metrics.text(heed), { headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } })
      },
    }),
    route({ method: 'GET', path: '/openapi.json', summary: 'This document', answer: 'json', open: true, handle: () => openApi() }),
  ]
}

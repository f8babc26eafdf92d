import { HeedError } from '../../base/errors.ts'
import { requireOperator } from '../auth/principal.ts'
import { route, type Route } from '../route.ts'
import { closed } from '../schema/schemas.ts'

export const operations: readonly Route[] = [
  route({ method: 'GET', path: '/health', summary: 'The process lives', answer: 'json', open: true, unlimited: true, handle: () => ({ status: 'ok' }) }),
  route({
    method: 'GET', path: '/ready', summary: 'The storage answers and requests are taken', answer: 'json', open: true, unlimited: true,
    async handle({ heed }) {
      try {
        // Also where nobody has asked an agent yet.
        for (const agent of Object.values(heed.listAgents())) if (!agent.storageDependsOnRequest) agent.threads()
        await Promise.all(heed.sites.all().map(async ({ threads }) => {
          await threads.open()
          // That it was opened says little: whether it answers is known by asking it.
          await threads.store.findRun('nobody')
        }))
      } catch (cause) {
        throw new HeedError('store_failed', 'Not ready: the storage does not answer.', { cause, retryable: true })
      }
      return { status: 'ready' }
    },
  }),
  route<{ limit?: number; timeoutMs?: number }>({
    method: 'POST', path: '/tick', summary: 'Does what is due now, for servers that do not stay', answer: 'json', body: closed({ limit: { type: 'integer', minimum: 1, maximum: 10_000 }, timeoutMs: { type: 'integer', minimum: 0 } }),
    handle({ heed, principal, body: { limit, timeoutMs } }) {
      requireOperator(principal)
      return heed.tick({ ...(limit === undefined ? {} : { limit }), ...(timeoutMs === undefined ? {} : { timeoutMs }) })
    },
  }),
]

import type { Agent } from '../../agent/agent.ts'
import { HeedError } from '../../base/errors.ts'
import type { Heed } from '../../heed/heed.ts'
import type { ScoreRetry } from '../../heed/scores.ts'
import type { ScoreQuery, ScoreRow } from '../../store/contract/scores.ts'
import { resolveResource } from '../auth/principal.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import * as responses from '../schema/score-schemas.ts'
import { id, limit, object, threadScope } from '../schema/schemas.ts'

/** Scores of runs on threads. */
export const scores: readonly Route[] = [
  route<never, Partial<ScoreQuery>>({
    method: 'GET', path: '/scores', summary: 'Scores of runs, newest first', response: 'json', read: true,
    responseSchema: responses.scorePage,
    query: object({
      ...threadScope, agentId: id, runId: id, scorerId: id, state: { enum: ['pending', 'scored', 'not_scorable', 'failed'] }, limit,
      before: { type: 'integer', minimum: 0, description: 'The `next` of the page before.' },
    }),
    handle: listScores,
  }),
  route<ScoreRetry>({
    method: 'POST', path: '/scores/retry', summary: 'Has failed scores made again', response: 'json',
    responseSchema: responses.retriedScores,
    body: object({
      ...threadScope, agentId: id, workflowId: id, runId: id, scorerId: id, stepId: id, source: { enum: ['live', 'test'] }, limit,
    }),
    async handle({ heed, principal, body: { agentId, resourceId, ...filters } }) {
      const agent = agentId === undefined ? undefined : knownAgent(heed, agentId)
      const owner = resolveResource(principal, resourceId)
      return { retried: await heed.retryScores({ ...filters, ...omitUndefined({ agentId: agent?.id, resourceId: owner }) }) }
    },
  }),
]

async function listScores({ heed, principal, query }: Call<never, Partial<ScoreQuery>>): Promise<{ scores: object[]; next?: number }> {
  const { agentId: name, resourceId, ...filters } = query
  const agent = name === undefined ? undefined : knownAgent(heed, name)
  const { scores: found, next } = await heed.listScores({
    ...filters, ...omitUndefined({ agentId: agent?.id, resourceId: resolveResource(principal, resourceId) }),
  })
  return { scores: found.map(withDates), ...omitUndefined({ next }) }
}

/** An agent by its id or its key. */
export function knownAgent(heed: Heed, name: string): Agent {
  const agent = heed.findAgent(name)
  if (agent) return agent
  throw new HeedError('unknown_agent', `There is no agent '${name}'.`, { details: { agentId: name } })
}

export function withDates({ createdAt, settledAt, ...score }: ScoreRow): object {
  return { ...score, createdAt: new Date(createdAt), ...(settledAt === undefined ? {} : { settledAt: new Date(settledAt) }) }
}

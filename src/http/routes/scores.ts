import { HeedError } from '../../base/errors.ts'
import type { ScoreQuery, ScoreRow } from '../../store/contract/scores.ts'
import { resolveResource } from '../auth/principal.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
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
]

async function listScores({ heed, principal, query }: Call<never, Partial<ScoreQuery>>): Promise<{ scores: object[]; next?: number }> {
  const { agentId: name, resourceId, ...filters } = query
  const agent = name === undefined ? undefined : heed.findAgent(name)
  if (name !== undefined && !agent) throw new HeedError('unknown_agent', `There is no agent '${name}'.`, { details: { agentId: name } })
  const { scores: found, next } = await heed.listScores({
    ...filters, ...omitUndefined({ agentId: agent?.id, resourceId: resolveResource(principal, resourceId) }),
  })
  return { scores: found.map(withDates), ...omitUndefined({ next }) }
}

function withDates({ createdAt, settledAt, ...score }: ScoreRow): object {
  return { ...score, createdAt: new Date(createdAt), ...(settledAt === undefined ? {} : { settledAt: new Date(settledAt) }) }
}

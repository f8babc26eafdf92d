import type { JSONSchema } from '../route.ts'
import { count, listOf } from './response-schemas.ts'
import { flag, having, record, text } from './schemas.ts'

/** The fields of scores and scorers in responses that clients may rely on. */

const score = having(
  {
    key: count, threadId: text, resourceId: text, agentId: text, runId: text, scorerId: text, version: text, state: text, attempts: count,
    score: { type: 'number' }, reason: text, error: record, usage: record, createdAt: text, settledAt: text,
    traceId: text, spanId: text, steps: count, agentVersion: count,
  },
  ['key', 'threadId', 'resourceId', 'agentId', 'runId', 'scorerId', 'version', 'state', 'attempts', 'createdAt'],
)
export const scorePage = having({ scores: listOf(score), next: count }, ['scores'])
export const retriedScores = having({ retried: count }, ['retried'])
const existingScore = having(
  {
    id: text, scorerId: text, scorer: record, entityType: text, entityId: text, entity: record, runId: text, threadId: text,
    resourceId: text, source: text, score: { type: 'number' }, reason: text, by: text, metadata: record, traceId: text,
    spanId: text, createdAt: text,
    updatedAt: text,
  },
  ['id', 'scorerId', 'entityType', 'entityId', 'runId', 'threadId', 'resourceId', 'source', 'score', 'createdAt', 'updatedAt'],
)
export const existingScorePage = having(
  {
    pagination: having({ total: count, page: count, perPage: count, hasMore: flag }, ['total', 'page', 'perPage', 'hasMore']),
    scores: listOf(existingScore),
  },
  ['pagination', 'scores'],
)
/** Of a score that was saved: its fields by both names. */
export const savedScore = having(
  {
    score: having({ ...score.properties, ...existingScore.properties }, [...(score.required ?? []), ...(existingScore.required ?? [])]
      .filter((name, index, names) => names.indexOf(name) === index)),
  },
  ['score'],
)
export const scorerInUse = having(
  {
    scorer: having({
      config: having(
        { id: text, name: text, description: text, type: text, version: text, better: text },
        ['id', 'name', 'description', 'type', 'version', 'better'],
      ),
    }, ['config']),
    sampling: record, agentIds: listOf(text), agentNames: listOf(text), workflowIds: listOf(text), isRegistered: flag, source: text,
  },
  ['scorer', 'agentIds', 'agentNames', 'workflowIds', 'isRegistered', 'source'],
)
export const scorersInUse: JSONSchema = { type: 'object', additionalProperties: scorerInUse }

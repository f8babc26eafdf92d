import { refused } from '../../../base/arguments.ts'
import { HeedError } from '../../../base/errors.ts'
import type { JSONObject } from '../../../base/json.ts'
import { scorersInUse, type ScoreListQuery, type ScorerUse } from '../../../heed/scores.ts'
import type { ScoreRow } from '../../../store/contract/scores.ts'
import { resolveResource } from '../../auth/principal.ts'
import { omitUndefined } from '../../request/fields.ts'
import { route, type Call, type Route } from '../../route.ts'
import * as responses from '../../schema/score-schemas.ts'
import { id, ignored, object, page, perPage, record } from '../../schema/schemas.ts'
import { knownAgent, withDates } from '../scores.ts'

interface Page {
  resourceId?: string
  page?: number
  perPage?: number
}

type EntityType = 'AGENT' | 'WORKFLOW' | 'STEP'
type Source = 'LIVE' | 'TEST' | 'live' | 'test'

interface SavedBody {
  score: {
    threadId?: string
    resourceId?: string
    runId: string
    scorerId: string
    version?: string
    score: number
    reason?: string
    metadata?: JSONObject
    entityId?: string
    source?: Source
  }
}

const paged = { resourceId: id, page, perPage }
const saved = object({
  threadId: { ...id, description: 'By default the thread of the run.' }, resourceId: id, runId: id, scorerId: id, version: id,
  score: { type: 'number' }, reason: { type: 'string', maxLength: 65_536 }, metadata: record,
  entityId: { ...id, description: 'The agent of the run.' }, entityType: { enum: ['AGENT'] },
  source: { enum: ['LIVE', 'TEST', 'live', 'test'] }, scorer: ignored, entity: ignored, input: ignored, output: ignored,
}, ['runId', 'scorerId', 'score'])

/** Scorers and scores by the routes of existing clients, over the calls of scores. Their pages have the scores that were made. */
export const existingScores: readonly Route[] = [
  route<never>({
    method: 'GET', path: '/scores/scorers', summary: 'The scorers in use by their ids, with who uses them', response: 'json', read: true,
    responseSchema: responses.scorersInUse,
    async handle(call) {
      const uses = await scorersInUse(call.heed, await call.context())
      return Object.fromEntries(Object.entries(uses).map(([scorerId, use]) => [scorerId, useForm(use)]))
    },
  }),
  route<never>({
    method: 'GET', path: '/scores/scorers/:scorerId', summary: 'One scorer, with who uses it', response: 'json', read: true,
    responseSchema: responses.scorerInUse,
    async handle(call) {
      const { scorerId = '' } = call.params
      const uses = await scorersInUse(call.heed, await call.context())
      if (Object.hasOwn(uses, scorerId) && uses[scorerId]) return useForm(uses[scorerId])
      throw new HeedError('unknown_scorer', `There is no scorer with the id '${scorerId}'.`, { details: { scorerId } })
    },
  }),
  route<never, Page & { agentId?: string }>({
    method: 'GET', path: '/scores/run/:runId', summary: 'The scores of a run by page, newest first', response: 'json', read: true,
    responseSchema: responses.existingScorePage, query: object({ ...paged, agentId: id }),
    handle: (call) => scorePage(call, {
      ...omitUndefined({ runId: call.params.runId }),
      ...(call.query.agentId === undefined ? {} : ofEntity(call, 'AGENT', call.query.agentId)),
    }),
  }),
  route<never, Page & { entityId?: string; entityType?: EntityType }>({
    method: 'GET', path: '/scores/scorer/:scorerId', summary: 'The scores of a scorer by page, newest first', response: 'json', read: true,
    responseSchema: responses.existingScorePage,
    query: object({
      ...paged, entityId: id, entityType: { enum: ['AGENT', 'WORKFLOW', 'STEP'], description: 'With `entityId`. Defaults to `AGENT`.' },
    }),
    handle(call) {
      const { entityId, entityType } = call.query
      if (entityType !== undefined && entityId === undefined) throw refused('entityType', 'left out without entityId')
      const entity = entityId === undefined ? {} : ofEntity(call, entityType, entityId)
      return scorePage(call, { ...omitUndefined({ scorerId: call.params.scorerId }), ...entity })
    },
  }),
  route<never, Page>({
    method: 'GET', path: '/scores/entity/:entityType/:entityId', response: 'json', read: true,
    summary: 'The scores of an agent, of the steps of a workflow, or of a step, by page, newest first',
    responseSchema: responses.existingScorePage, query: object(paged),
    handle: (call) => scorePage(call, ofEntity(call, call.params.entityType, call.params.entityId ?? '')),
  }),
  route<SavedBody>({
    method: 'POST', path: '/scores', response: 'json',
    summary: 'Stores what its caller thinks of a run, in place of what it thought before',
    responseSchema: responses.savedScore, body: object({ score: saved }, ['score']),
    handle: saveScore,
  }),
]

type Asked = Pick<Call<unknown, unknown>, 'heed' | 'principal'>

/** A page of the scores that were made: those that are pending or failed have no number. */
async function scorePage({ heed, principal, query }: Call<unknown, Page>, about: ScoreListQuery): Promise<object> {
  const { page: number = 0, perPage: size = 10 } = query
  const wanted = { ...about, state: 'scored' as const, ...omitUndefined({ resourceId: resolveResource(principal, query.resourceId) }) }
  const total = await heed.countScores(wanted)
  const { scores } = await heed.listScores({ ...wanted, limit: size, offset: number * size })
  return { pagination: { total, page: number, perPage: size, hasMore: (number + 1) * size < total }, scores: scores.map(scoreForm) }
}

function ofEntity({ heed }: Pick<Asked, 'heed'>, type: string = 'AGENT', entityId: string): ScoreListQuery {
  if (type === 'AGENT') return { agentId: knownAgent(heed, entityId).id }
  if (type === 'WORKFLOW') return { workflowId: entityId }
  if (type === 'STEP') return { stepId: entityId }
  throw refused('entityType', "'AGENT', 'WORKFLOW' or 'STEP'")
}

/** The run is found before: a score that names no thread, or another agent than the run's, is about what its caller means. */
async function saveScore({ heed, principal, body }: Call<SavedBody>): Promise<object> {
  const { threadId, entityId, source, scorerId, version, score, reason, metadata, ...about } = body.score
  const { runId } = about
  const resourceId = resolveResource(principal, about.resourceId)
  const agent = entityId === undefined ? undefined : knownAgent(heed, entityId)
  const threads = agent?.threads() ?? heed.sites.of().threads
  await threads.open()
  const run = await threads.store.findRun(runId)
  const differs = run && [[resourceId, run.resourceId], [agent?.id, run.agentId], [threadId, run.threadId]].some(
    ([given, own]) => given !== undefined && given !== own,
  )
  // As for a missing one: which runs other resources have is not told.
  if (!run || differs) {
    throw new HeedError('not_found', `There is no run '${runId}' that this score may be of: check its thread, resource and agent.`, {
      details: { runId },
    })
  }
  const row = await heed.saveScore({
    threadId: run.threadId, resourceId: run.resourceId, runId, scorerId, score, by: principal.id,
    ...omitUndefined({ agentId: agent?.id, version, reason, metadata }),
    ...(source === undefined ? {} : { source: source.toLowerCase() as 'live' | 'test' }),
  })
  return { score: { ...withDates(row), ...scoreForm(row), source: source ?? row.source } }
}

function scoreForm(row: ScoreRow): object {
  const { key, scorerId, version, agentId, stepId, runId, threadId, resourceId, source, ...rest } = row
  const { score, reason, by, metadata, traceId, spanId } = rest
  const entityId = stepId ?? agentId
  return {
    id: String(key), scorerId, scorer: { id: scorerId, version }, entityType: stepId === undefined ? 'AGENT' : 'STEP', entityId,
    entity: { id: entityId }, runId, threadId, resourceId, source: source.toUpperCase(),
    ...omitUndefined({ score, reason, by, metadata, traceId, spanId }),
    createdAt: new Date(row.createdAt), updatedAt: new Date(row.settledAt ?? row.createdAt),
  }
}

/** Neither the instructions of a judge nor its model are for every caller. */
function useForm({ scorer, ...use }: ScorerUse): object {
  const { id: scorerId, name, description, type, version, better } = scorer
  return { scorer: { config: { id: scorerId, name, description, type, version, better } }, ...use, source: 'code' }
}

import type { JSONValue } from '../../../base/json.ts'
import type { WatchEnd, WatchMode, WatchState } from '../../../watch/machine.ts'
import type {
  CandidateRecord, CandidateState, ConsideredInbound, InboundContent, InboundRecord, InboundSender, UndeliveredRecord, WatchCriteria,
  WatchDelivery, WatchRecord,
} from '../../contract/watches.ts'

export interface InboundRow {
  seq: number
  id: string
  resourceId: string
  channelId: string
  kind: string
  providerId: string
  sender: string
  contactId: string | null
  contactSince: number
  conversation: string | null
  content: string
  categories: string | null
  receivedAt: number
  dueAt: number | null
  attempts: number
  lost: number
  failures: number
  error: string | null
  consumedBy: string | null
  offered: string | null
}

export const inboundColumns = `
  seq, id, resource_id AS resourceId, channel_id AS channelId, kind, provider_id AS providerId, sender, contact_id AS contactId,
  contact_since AS contactSince, conversation,
  content, categories, received_at AS receivedAt, due_at AS dueAt, attempts, lost, failures, error, consumed_by AS consumedBy, offered`

/** The number of the message that was stored last. */
export const lastSeq = 'SELECT coalesce(max(seq), 0) FROM heed_inbounds'

/** In `offered`: the annotator of a message failed, and the rules gave its categories; or it is not asked any more. */
export const unanswered = '{}'
const unasked = '"rules"'

function rulesOnly({ offered, dueAt }: InboundRow): Pick<InboundRecord, 'rulesOnly'> {
  if (offered === unasked || (offered === unanswered && dueAt === null)) return { rulesOnly: 'for_good' }
  return offered === unanswered ? { rulesOnly: 'for_now' } : {}
}

export function inboundOf(row: InboundRow): InboundRecord {
  return {
    seq: row.seq,
    id: row.id,
    resourceId: row.resourceId,
    channelId: row.channelId,
    kind: row.kind,
    providerId: row.providerId,
    sender: JSON.parse(row.sender) as InboundSender,
    content: JSON.parse(row.content) as InboundContent,
    receivedAt: new Date(row.receivedAt),
    attempts: row.attempts,
    lost: row.lost,
    ...(hasFailed(row) ? { failed: true } : {}),
    ...rulesOnly(row),
    ...(row.contactId === null ? {} : { contactId: row.contactId, contactSince: row.contactSince }),
    ...(row.conversation === null ? {} : { conversation: row.conversation }),
    ...(row.categories === null ? {} : { categories: JSON.parse(row.categories) as string[] }),
    ...(row.error === null ? {} : { lastError: row.error }),
  }
}

/** It is annotated no more, and has no categories. */
function hasFailed({ dueAt, categories }: Pick<InboundRow, 'dueAt' | 'categories'>): boolean {
  return dueAt === null && categories === null
}

export interface WatchRow {
  ord: number
  id: string
  resourceId: string
  threadId: string
  threadCreatedAt: number
  agentId: string
  state: WatchState
  reason: WatchEnd | null
  mode: WatchMode
  exclusive: number
  mayEnd: number
  expiresAt: number
  maxEvaluations: number
  evaluations: number
  hits: number
  skipped: number
  since: number
  registeredSeq: number
  createdAt: number
  endedSeq: number | null
  endedAt: number | null
  dueAt: number | null
  description: string
  criteria: string
  resultSchema: string | null
  runId: string | null
}

export const watchColumns = `
  ord, id, resource_id AS resourceId, thread_id AS threadId, thread_created_at AS threadCreatedAt, agent_id AS agentId, state, reason, mode,
  exclusive, may_end AS mayEnd, expires_at AS expiresAt, max_evaluations AS maxEvaluations, evaluations, hits, skipped, since,
  registered_seq AS registeredSeq, ended_seq AS endedSeq, created_at AS createdAt, ended_at AS endedAt, due_at AS dueAt,
  description, criteria, result_schema AS resultSchema, run_id AS runId`

export function watchOf(row: WatchRow): WatchRecord {
  return {
    id: row.id,
    resourceId: row.resourceId,
    threadId: row.threadId,
    agentId: row.agentId,
    description: row.description,
    criteria: criteriaOf(row),
    mode: row.mode,
    exclusive: row.exclusive === 1,
    mayEnd: row.mayEnd === 1,
    state: row.state,
    expiresAt: new Date(row.expiresAt),
    maxEvaluations: row.maxEvaluations,
    evaluations: row.evaluations,
    hits: row.hits,
    skipped: row.skipped,
    since: new Date(row.since),
    createdAt: new Date(row.createdAt),
    ...(row.reason === null ? {} : { reason: row.reason }),
    ...(row.endedAt === null ? {} : { endedAt: new Date(row.endedAt) }),
    ...(row.resultSchema === null ? {} : { resultSchema: JSON.parse(row.resultSchema) as JSONValue }),
  }
}

export function criteriaOf({ criteria }: Pick<WatchRow, 'criteria'>): WatchCriteria {
  return JSON.parse(criteria) as WatchCriteria
}

interface CandidateRow {
  watch: number
  seq: number
  state: CandidateState
  attempts: number
  categories: string
  value: string | null
  detail: string | null
  settledAt: number | null
}

export const candidateColumns
  = 'watch, c.seq AS seq, state, c.attempts AS attempts, c.categories AS categories, value, detail, settled_at AS settledAt'

export interface CandidateOfInboundRow extends CandidateRow {
  inboundId: string
  channelId: string
  kind: string
  contactId: string | null
  receivedAt: number
}

export function candidateOf(watchId: string, row: CandidateOfInboundRow): CandidateRecord {
  return {
    watchId,
    seq: row.seq,
    inboundId: row.inboundId,
    channelId: row.channelId,
    kind: row.kind,
    categories: JSON.parse(row.categories) as string[],
    state: row.state,
    attempts: row.attempts,
    receivedAt: new Date(row.receivedAt),
    ...(row.contactId === null ? {} : { contactId: row.contactId }),
    ...(row.value === null ? {} : { value: JSON.parse(row.value) as JSONValue }),
    ...(row.detail === null ? {} : { detail: row.detail }),
    ...(row.settledAt === null ? {} : { settledAt: new Date(row.settledAt) }),
  }
}

/** A message, with its candidate of the watch where there is one. */
export interface ConsideredRow extends InboundOfConsidered {
  state: CandidateState | null
  attempts: number | null
  expected: string | null
  value: string | null
  detail: string | null
  settledAt: number | null
}

type InboundOfConsidered = Pick<
  InboundRow, 'seq' | 'id' | 'channelId' | 'kind' | 'contactId' | 'contactSince' | 'categories' | 'receivedAt' | 'dueAt'
> & { taken: number }

export const consideredColumns = `
  i.seq AS seq, i.id AS id, i.channel_id AS channelId, i.kind AS kind, i.contact_id AS contactId, i.contact_since AS contactSince,
  i.categories AS categories, i.received_at AS receivedAt, i.due_at AS dueAt, c.state AS state, c.attempts AS attempts,
  c.categories AS expected, c.value AS value, c.detail AS detail, c.settled_at AS settledAt`

export function consideredOf(watch: WatchRow, row: ConsideredRow): ConsideredInbound {
  const { state, attempts, expected } = row
  return {
    seq: row.seq,
    id: row.id,
    channelId: row.channelId,
    kind: row.kind,
    receivedAt: new Date(row.receivedAt),
    taken: row.taken === 1,
    ...(row.contactId === null ? {} : { contactId: row.contactId, contactSince: row.contactSince }),
    ...(row.categories === null ? {} : { categories: JSON.parse(row.categories) as string[] }),
    ...(hasFailed(row) ? { failed: true } : {}),
    ...(state === null
      ? {}
      : {
          candidate: candidateOf(watch.id, {
            ...row, watch: watch.ord, state, inboundId: row.id, attempts: attempts ?? 0, categories: expected ?? '[]',
          }),
        }),
  }
}

export interface DeliveryRow {
  ord: number
  id: string
  watch: number
  threadId: string
  agentId: string
  reason: WatchDelivery['reason']
  value: string | null
  seq: number | null
  createdAt: number
  dueAt: number | null
  attempts: number
  state: 'queued' | 'due' | 'delivered' | 'failed'
  error: string | null
  /** 1 where what the thread answers is a reply. */
  answered: number
}

export const deliveryColumns = `
  ord, id, watch, thread_id AS threadId, agent_id AS agentId, reason, value, seq, created_at AS createdAt, due_at AS dueAt, attempts,
  state, error, EXISTS (SELECT 1 FROM heed_replies r WHERE r.signal_id = heed_watch_deliveries.id) AS answered`

export function deliveryOf(row: DeliveryRow, watch: WatchRow, inbound: InboundRow | undefined): WatchDelivery {
  return {
    id: row.id,
    watch: watchOf(watch),
    threadCreatedAt: watch.threadCreatedAt,
    reason: row.reason,
    attempts: row.attempts,
    createdAt: new Date(row.createdAt),
    ...(row.value === null ? {} : { value: JSON.parse(row.value) as JSONValue }),
    ...(row.answered === 1 ? { answered: true } : {}),
    ...(inbound ? { inbound: matchedInbound(inboundOf(inbound)) } : {}),
  }
}

export function undeliveredOf({ id, reason, state, attempts, error, createdAt }: DeliveryRow): UndeliveredRecord {
  return {
    signalId: id,
    reason,
    state: state === 'failed' ? 'failed' : 'pending',
    attempts,
    createdAt: new Date(createdAt),
    ...(error === null ? {} : { error }),
  }
}

/** Without its content: the thread of a watch receives nothing of it. */
function matchedInbound(inbound: InboundRecord): NonNullable<WatchDelivery['inbound']> {
  const { id, seq, channelId, kind, contactId, sender, categories, rulesOnly } = inbound
  return {
    id, seq, channelId, kind, sender,
    ...(contactId === undefined ? {} : { contactId }),
    ...(categories ? { categories } : {}),
    ...(rulesOnly ? { rulesOnly } : {}),
  }
}

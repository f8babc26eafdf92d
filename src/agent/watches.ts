import { createHash } from 'node:crypto'
import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { RequestContext } from '../run/request-context.ts'
import type { ModelConfig } from '../run/model/model.ts'
import { createTool, nestingOf, type Tool } from '../run/tools/tool.ts'
import type { WatchQuery, WatchRecord, WatchScope } from '../store/contract/watches.ts'
import { watchInputSchema, type WatchInput } from '../watch/criteria.ts'
import type { ExplainedWatch } from '../watch/explain.ts'
import type { WatchDetails } from '../watch/details.ts'
import type { WatchLimitOptions, WatchTarget } from '../watch/watches.ts'
import type { Site } from '../heed/site.ts'
import type { Runnable } from '../thread/runtime/runnable.ts'
import type { Askable } from './askable.ts'
import { resolve, type AgentConfig } from './config.ts'

export type { ExplainedWatch, WatchDetails, WatchInput, WatchRecord, WatchTarget }

/** A watch of an agent. With a `resourceId`, watches of other resources are not found. */
export type AgentWatchScope = Pick<WatchScope, 'id' | 'resourceId' | 'threadId'>
/** A page of watches. */
export interface WatchPage {
  watches: WatchRecord[]
  more: boolean
}

/** Which watches of an agent a list has. */
export type AgentWatchQuery = Partial<Omit<WatchQuery, 'agentId'>>

/** What the watches of a site need of their agent. */
export function watchingOf(config: AgentConfig): { limits: WatchLimitOptions; judgeModel(): Promise<ModelConfig | undefined> } {
  const { model, ...limits } = typeof config.watches === 'object' ? config.watches : {}
  return {
    limits,
    async judgeModel() {
      const judge = model ?? config.model
      return judge === undefined ? undefined : resolve(judge, { requestContext: new RequestContext() })
    },
  }
}

export async function awaitSignal(agent: Askable, input: WatchInput, target: WatchTarget): Promise<WatchRecord> {
  checkTarget(target)
  const here = await agent.resolveStorage()
  return here.site().watches.register(here, input, target)
}

/** Rejects with `id_taken` where the watch with this id is another one than the input asks for. */
export async function registerSame(agent: Askable, input: WatchInput, target: WatchTarget): Promise<WatchRecord> {
  checkTarget(target)
  const here = await agent.resolveStorage()
  return here.site().watches.register(here, input, { ...target, same: true })
}

function checkTarget(target: WatchTarget): void {
  checkNames('awaitSignal()', target, ['threadId', 'resourceId', 'id'])
  for (const field of ['threadId', 'resourceId'] as const) checkName(field, target[field])
  if (target.id === undefined) return
  checkName('id', target.id)
  if (target.id.length > maxIdLength) throw refused('id', `at most ${maxIdLength} characters long`)
}

/** The ids of a watch's signals are derived from its own, and are limited. */
const maxIdLength = 200

export async function listWatches(agent: Askable, query: AgentWatchQuery = {}): Promise<WatchPage> {
  checkNames('listWatches()', query, ['resourceId', 'threadId', 'state', 'after', 'limit'])
  for (const field of ['resourceId', 'threadId', 'after'] as const) if (query[field] !== undefined) checkName(field, query[field])
  if (query.state !== undefined && query.state !== 'open' && query.state !== 'ended') throw refused('state', "'open' or 'ended'")
  if (query.limit !== undefined) checkWhole('limit', query.limit, 1)
  return (await agent.resolveStorage()).site().watches.list({ ...query, agentId: agent.id })
}

export async function getWatch(agent: Askable, scope: AgentWatchScope): Promise<WatchDetails | null> {
  return (await agent.resolveStorage()).site().watches.get(scopeOf('getWatch()', agent, scope))
}

/** A watch whose messages are explained, 100 unless `limit` says otherwise, after the message with the number `after`. */
export interface WatchToExplain {
  watchId: string
  resourceId?: string
  threadId?: string
  limit?: number
  after?: number
}

export async function explainWatch(agent: Askable, asked: WatchToExplain): Promise<ExplainedWatch | null> {
  checkNames('explain()', asked, ['watchId', 'resourceId', 'threadId', 'limit', 'after'])
  const { watchId, limit, after, ...scope } = asked
  checkName('watchId', watchId)
  if (limit !== undefined) checkWhole('limit', limit, 1)
  if (after !== undefined) checkWhole('after', after, 0)
  const page = { ...(limit === undefined ? {} : { limit }), ...(after === undefined ? {} : { after }) }
  return (await agent.resolveStorage()).site().watches.explain({ ...scopeOf('explain()', agent, { ...scope, id: watchId }), ...page })
}

export async function cancelWatch(agent: Askable, scope: AgentWatchScope): Promise<WatchRecord> {
  return (await agent.resolveStorage()).site().watches.cancel(scopeOf('cancelWatch()', agent, scope))
}

function scopeOf(method: string, { id: agentId }: Askable, scope: AgentWatchScope): WatchScope {
  checkNames(method, scope, ['id', 'resourceId', 'threadId'])
  checkName('id', scope.id)
  for (const field of ['resourceId', 'threadId'] as const) if (scope[field] !== undefined) checkName(field, scope[field])
  return { ...scope, agentId }
}

const description = `Wait for a message that arrives later, such as a code by SMS or a reply from a contact. The conversation goes on at \
once; when a message matches, or the wait ends, you receive a <watch> element here with the result. If another agent called you, the \
conversation that it is in receives it: say in your answer what to do with it. Name at least one of \
expected_categories, expected_channels and expected_contacts. Use result_schema for what you need of the message: without it you only \
learn that one matched.`

/**
 * The tool with which an agent waits on its own thread; one that was called, on the thread of the conversation. A repeated call after a
 * crash registers the same watch.
 */
export function awaitSignalTool(agent: Runnable, site: Site): Tool {
  return createTool({
    id: 'await_signal',
    description,
    inputSchema: watchInputSchema,
    idempotent: true,
    async execute(input, context) {
      const { threadId, resourceId, toolCallId, runId } = context
      if (threadId === undefined || resourceId === undefined)
        throw new HeedError('invalid_argument', 'await_signal needs a thread: what it waits for is sent there.')
      // Providers may give calls of two steps one id.
      const id = callId([runId, nestingOf(context)?.step ?? 0, toolCallId].join(':'))
      const waiting = await conversationOf(site, { threadId, resourceId, runId })
      const watch = await site.watches.register(agent, input as WatchInput, { id, resourceId, ...waiting })
      return {
        watch: watch.id,
        state: watch.state,
        expires_at: watch.expiresAt.toISOString(),
        ...(watch.threadId === threadId ? {} : { result_goes_to: 'the conversation of the agent that called you' }),
      }
    },
  })
}

/** Providers, and agents that call agents, make ids of any length. */
function callId(id: string): string {
  return id.length <= maxIdLength ? id : `call-${createHash('sha256').update(id).digest('hex')}`
}

/**
 * Where the result of a watch goes. A child thread answers the call that it was created for, and no caller after that: the first thread
 * above that is no child thread waits, with the agent and the run that it has.
 */
async function conversationOf(
  site: Site, { threadId, resourceId, runId }: { threadId: string; resourceId: string; runId: string },
): Promise<{ threadId: string; runId: string; agentId?: string }> {
  const { store } = site.threads
  let thread = await store.getThread({ threadId, resourceId })
  if (thread?.parentId === undefined) return { threadId, runId }
  while (thread?.parentId !== undefined) thread = await store.getThread({ threadId: thread.parentId, resourceId })
  if (thread?.runId !== undefined && thread.agentId !== undefined)
    return { threadId: thread.id, runId: thread.runId, agentId: thread.agentId }
  const why = 'The agent that called you has no run any more, or its thread is in another storage: no thread would receive the result.'
  throw new HeedError('unsupported_option', why, { details: { threadId } })
}

import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { RequestContext } from '../run/request-context.ts'
import type { ModelConfig } from '../run/model/model.ts'
import { createTool, nestingOf, type Tool } from '../run/tools/tool.ts'
import type { WatchQuery, WatchRecord, WatchScope } from '../store/contract/watches.ts'
import { watchInputSchema, type WatchInput } from '../watch/criteria.ts'
import type { ExplainedWatch } from '../watch/explain.ts'
import type { WatchDetails, WatchLimitOptions, WatchTarget } from '../watch/watches.ts'
import type { Site } from '../heed/site.ts'
import type { Runnable } from '../thread/runtime/runnable.ts'
import type { Askable } from './askable.ts'
import { resolve, type AgentConfig } from './config.ts'

export type { ExplainedWatch, WatchDetails, WatchInput, WatchRecord, WatchTarget }

/** A watch of an agent. With a `resourceId`, watches of other resources are not found. */
export type AgentWatchScope = Pick<WatchScope, 'id' | 'resourceId' | 'threadId'>
export interface WatchPage {
  watches: WatchRecord[]
  more: boolean
}

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
  checkNames('awaitSignal()', target, ['threadId', 'resourceId', 'id'])
  for (const field of ['threadId', 'resourceId'] as const) checkName(field, target[field])
  if (target.id !== undefined) checkName('id', target.id)
  const here = await agent.resolveStorage()
  return here.site().watches.register(here, input, target)
}

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
once; when a message matches, or the wait ends, you receive a <watch> element here with the result. Name at least one of \
expected_categories, expected_channels and expected_contacts. Use result_schema for what you need of the message: without it you only \
learn that one matched.`

/** The tool with which an agent waits on its own thread. A repeated call after a crash registers the same watch. */
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
      const id = [runId, nestingOf(context)?.step ?? 0, toolCallId].join(':')
      const watch = await site.watches.register(agent, input as WatchInput, { id, threadId, resourceId, runId })
      return { watch: watch.id, state: watch.state, expires_at: watch.expiresAt.toISOString() }
    },
  })
}

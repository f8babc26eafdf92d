import { HeedError } from '../../base/errors.ts'
import type { Route } from '../route.ts'
import { actionOf, isWithoutThread } from './policy.ts'
import { isOperator, type Principal } from './principal.ts'

/**
 * What a principal may do with the threads of its resources. `send`: messages, and what concerns the own ones: aborts, the queue, declines.
 * `run`: `generate` and `stream`. `memory`: change threads, messages and working memory. `notify`: signals and notifications of systems.
 * `edit`: the versions of agents, which reach the runs of all resources. `operate`: what concerns the whole server, and the prompts of
 * agents.
 */
export type PrincipalScope = 'read' | 'send' | 'run' | 'approve' | 'memory' | 'schedule' | 'notify' | 'edit' | 'operate'

const tenant: readonly PrincipalScope[] = ['read', 'send', 'run', 'approve', 'memory', 'schedule', 'notify']

/** The scopes of the usual principals: a user of an application, the back end of a tenant, and an operator of the server. */
export const principalScopes: Readonly<Record<'endUser' | 'tenant' | 'operator', readonly PrincipalScope[]>> = {
  endUser: ['read', 'send', 'run'],
  tenant,
  operator: [...tenant, 'edit', 'operate'],
}

/** Without `scopes`, a principal has all of them except for `edit` and `operate`, which `operator` and access to all resources imply. */
export function hasScope(principal: Principal, scope: PrincipalScope): boolean {
  if (scope === 'edit') return principal.scopes?.includes('edit') ?? isOperator(principal)
  return scope === 'operate' ? isOperator(principal) : (principal.scopes?.includes(scope) ?? true)
}

/** True for a principal that may not change how agents work: it has not all resources, or not the scope to operate. */
export function isLimited(principal: Principal): boolean {
  return principal.resources !== '*' || !isOperator(principal)
}

/** The scope that a request to a route needs; undefined for routes that need none. */
export function scopeOfRequest(
  { path, read, anonymous }: Pick<Route, 'path' | 'read' | 'anonymous'>, body: Readonly<Record<string, unknown>> = {},
): PrincipalScope | undefined {
  if (ofOperators.has(path)) return 'operate'
  if (ofEditors.test(path)) return 'edit'
  if (anonymous || isWithoutThread(path)) return undefined
  const ofWorkflow = workflowScopes.find(([paths]) => paths.test(path))
  if (ofWorkflow) return read ? 'read' : ofWorkflow[1]
  const action = actionOf(path, read, body)
  if (action !== 'send_signal') return action === 'read_thread' ? 'read' : 'approve'
  if (path.startsWith('/memory/')) return 'memory'
  return ofAgentRoutes.find(([paths]) => paths.test(path))?.[1] ?? 'send'
}

const ofOperators: ReadonlySet<string> = new Set([
  '/tick', '/metrics', '/processes', '/scores/retry', '/agents/:agentId/explain-prompt',
  '/agents/:agentId/threads/:threadId/runs/:runId/steps/:step/prompt',
])

const ofEditors = /^\/(agents\/:agentId\/(editor$|versions|releases)|editor\/agents$|(prompt-blocks|stored\/agents)(\/|$))/

const ofAgentRoutes: ReadonlyArray<[RegExp, PrincipalScope]> = [
  [/^\/agents\/:agentId\/(schedules|watches)/, 'schedule'],
  [/^\/agents\/:agentId\/((state-)?signals|notifications)$|\/notifications\/retry$|^\/replies\//, 'notify'],
  [/^\/agents\/:agentId\/(generate|stream|stream-until-idle|recover|threads\/:threadId\/retry|(voice\/)?(speak|listen))$/, 'run'],
]

/** To resume a step is to answer for a person, and to begin again from one may leave out a step that asks. */
const workflowScopes: ReadonlyArray<[RegExp, PrincipalScope]> = [
  [/^\/workflows\/:workflowId\/(runs\/:runId\/)?(resume|restart|time-travel)(-[a-z-]+)?$/, 'approve'],
  [/^\/workflows\/:workflowId\/runs\/:runId\/events$/, 'notify'],
  // To delete one.
  [/^\/workflows\/:workflowId\/runs\/:runId$/, 'memory'],
  [/^\/workflows\//, 'run'],
]

/** Routes that also answer with what is on a thread, or in a run. */
const alsoRead = /^\/agents\/:agentId\/threads\/:threadId\/voice(\/ticket)?$|^\/workflows\/:workflowId\/[a-z-]+-(async|stream)$/

/** A second scope that a request to a route needs. */
export function furtherScope({ path }: Pick<Route, 'path'>): PrincipalScope | undefined {
  return alsoRead.test(path) ? 'read' : undefined
}

/** `ownApprovals`: the agent lets a principal approve that may send. */
export function checkScope(principal: Principal, scope: PrincipalScope, ownApprovals: boolean): void {
  if (hasScope(principal, scope) || (scope === 'approve' && ownApprovals && hasScope(principal, 'send'))) return
  const why = scope === 'operate' ? 'This route is for operators only' : 'You may not do this'
  throw new HeedError('forbidden', `${why}: it needs the scope '${scope}'.`, { details: { scope } })
}

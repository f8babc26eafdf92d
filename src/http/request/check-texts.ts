import type { Agent } from '../../agent/agent.ts'
import { isPlainObject } from '../../base/json.ts'
import { replaceTexts } from '../../base/json-texts.ts'
import { mayAccess } from '../auth/principal.ts'
import { isLimited } from '../auth/scopes.ts'
import type { Route } from '../route.ts'
import { memoryAgent } from './access.ts'
import type { RequestCall } from './call.ts'
import { omitUndefined } from './fields.ts'
import { mapRequestTexts } from './texts.ts'

/**
 * Has input processors check the texts in the request of a limited principal that no run checks before they are stored: messages that are
 * saved, working memory, titles, metadata, notifications, schedules, watches, descriptions of tools. What a processor changes is what the
 * route receives; a rejection is an error of the request, and nothing is stored.
 */
export async function checkTexts(route: Route, call: RequestCall): Promise<void> {
  const { principal, body } = call
  if (!route.body || route.read || route.relays || route.anonymous || !isLimited(principal)) return
  // Steps read what a workflow is sent; an agent among them checks its own input.
  if (call.params.workflowId !== undefined) return
  const agents = (await readersOf(call)).filter(({ canRejectInput }) => canRejectInput)
  if (agents.length === 0) return
  const startsRun = route.startsRun === true && !isPersisted(body)
  const requestContext = await call.context()
  const owner = omitUndefined({ ...ownerOf(call), requestContext })
  call.body = await replaceTexts(
    (map) => mapRequestTexts(body, map, startsRun),
    async (texts) => {
      let checked = texts
      for (const agent of agents) checked = await agent.checkInput(checked, owner)
      return checked
    },
  )
}

/** The agents that may read what the request stores: the one in its path, or all on the storage of a memory. */
async function readersOf(call: RequestCall): Promise<Agent[]> {
  if (call.agentInPath) return [call.agentInPath]
  const named = await memoryAgent(call)
  const site = named.site()
  const context = (await call.context()) ?? {}
  const all = await Promise.all(Object.values(call.heed.listAgents()).map((agent) => agent.forRequest(context)))
  return [named, ...all.filter((agent) => agent.id !== named.id && agent.site() === site)]
}

/** Where a send asks to be stored without a run, no run checks it before. */
function isPersisted({ ifActive, ifIdle }: Record<string, unknown>): boolean {
  return [ifActive, ifIdle].some((branch) => isPlainObject(branch) && branch.behavior === 'persist')
}

function ownerOf({ principal, params, body, query }: RequestCall): { threadId?: string; resourceId?: string } {
  const memory = isPlainObject(body.memory) ? body.memory : {}
  const thread = isPlainObject(memory.thread) ? memory.thread.id : memory.thread
  const [first] = Array.isArray(body.messages) ? (body.messages as unknown[]) : []
  const message = isPlainObject(first) ? first : {}
  const threadId = [params.threadId, body.threadId, thread, message.threadId].find((one) => typeof one === 'string' && one !== '')
  const only = principal.resources.length === 1 ? principal.resources[0] : undefined
  // The route rejects a resource that the principal may not access.
  const resourceId = [body.resourceId, query.resourceId, memory.resource, message.resourceId, only]
    .find((one): one is string => typeof one === 'string' && one !== '' && one !== '*' && mayAccess(principal, one))
  return omitUndefined({ threadId: threadId as string | undefined, resourceId })
}

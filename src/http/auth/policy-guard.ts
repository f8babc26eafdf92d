import { describe, HeedError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { everyResource, isAllowed, type Policies } from '../../heed/policies.ts'
import type { PolicyContext, PolicyRequest, PolicyResource } from '../../policy/request.ts'
import type { SuspendedCall } from '../../store/contract/threads.ts'
import { memoryAgent } from '../request/access.ts'
import type { Call, Route } from '../route.ts'
import { actionsOf, policyQuestion, type PolicyQuestion } from './policy.ts'
import { mayAccess, resolveResource } from './principal.ts'
import { noRequest, requestToDecide, undecidedCalls } from './undecided-calls.ts'

/** What one question is about. The tenant is the resource that owns it. */
interface Asked {
  tenant: string
  resource: PolicyResource
  context?: PolicyContext
}

interface NamedThread {
  threadId: string
  resourceId?: string
}

/** Asks the policies of a Heed about each request, before its route handles it. */
export class PolicyGuard {
  readonly #policies: Policies
  readonly #logger: Logger

  constructor(policies: Policies, logger: Logger) {
    this.#policies = policies
    this.#logger = logger
  }

  /**
   * Rejects a request that the policies deny, or about which they cannot be asked. Returns the id of the request for a decision that an
   * approval may decide: the route must decide no other, since the thread may suspend for another call meanwhile.
   */
  async check(route: Route, call: Call): Promise<string | undefined> {
    const question = policyQuestion(route, call)
    if (!question) return undefined
    if (question.action === 'approve_tool') return this.#checkApproval(route, call, question)
    const asked = await concerned(call, question)
    for (const action of actionsOf(route, question)) for (const one of asked) await this.#ask(route, question, action, one)
    return undefined
  }

  async #checkApproval(route: Route, call: Call, question: PolicyQuestion): Promise<string> {
    const { approvalId } = question
    const { calls: named, resourceId } = await undecidedCalls(call, question)
    for (const one of named) await this.#ask(route, question, 'approve_tool', toolOf(one, call.agent.id, resourceId))
    if (named.length > 0) return requestToDecide(named, call)
    // Nothing can be decided. The response may tell what was decided before.
    for (const one of await concerned(call, question)) await this.#ask(route, question, 'send_signal', one)
    return approvalId ?? noRequest
  }

  async #ask({ method, path }: Route, { principal }: PolicyQuestion, action: PolicyRequest['action'], asked: Asked): Promise<void> {
    const about = { route: `${method} ${path}`, principal: principal.id, action, tenant: asked.tenant }
    try {
      const decision = await this.#policies.authorize({ ...asked, principal, action })
      if (isAllowed(decision)) return
      const { policyIds, failure } = decision
      this.#logger.info('policies denied a request', { ...about, policyIds, ...(failure === undefined ? {} : { failure }) })
    } catch (error) {
      this.#logger.error('policies could not be asked: the request was denied', { ...about, error: describe(error) })
    }
    // Neither the policies nor their ids are for the caller.
    throw new HeedError('forbidden', 'The policies of this server deny this request.')
  }
}

/** The tool of a suspended call, or of the call of a child thread that it stands for. */
function toolOf({ toolName, request }: SuspendedCall, ownAgent: string, resourceId: string): Asked {
  const { toolName: name = toolName, path = [], taintedBy = [] } = request ?? {}
  return { tenant: resourceId, resource: { type: 'tool', name, agentId: path.at(-2) ?? ownAgent, resourceId }, context: { taintedBy } }
}

/** The threads that a request is about; without any, all threads of the principal's resources. */
async function concerned(call: Call, question: PolicyQuestion): Promise<Asked[]> {
  const { principal } = call
  const { threadId, threads = [], allThreads, givenTo } = question
  const resourceId = question.resourceId === undefined ? undefined : resolveResource(principal, question.resourceId)
  const named: NamedThread[] = [...(threadId === undefined ? [] : [{ threadId }]), ...threads, ...(await found(call, question, resourceId))]
  const asked = await Promise.all(named.map(async (thread) => {
    const own = thread.resourceId === undefined ? resourceId : resolveResource(principal, thread.resourceId)
    const owner = own ?? (await ownerOf(call, thread.threadId))
    return owner === undefined ? usersOf(call, undefined) : [threadOf(thread.threadId, owner)]
  }))
  if (givenTo !== undefined) asked.push(usersOf(call, resolveResource(principal, givenTo)))
  if (allThreads || asked.length === 0) asked.push(usersOf(call, resourceId))
  return asked.flat()
}

function threadOf(id: string, resourceId: string): Asked {
  return { tenant: resourceId, resource: { type: 'thread', id, resourceId } }
}

/** All threads of a resource; if none is named, of each resource that the principal may access. */
function usersOf({ principal: { resources } }: Pick<Call, 'principal'>, resourceId: string | undefined): Asked[] {
  const own = resources === '*' || resources.length === 0 ? [everyResource] : resources
  return (resourceId === undefined ? own : [resourceId]).map((id) => ({ tenant: id, resource: { type: 'user', id } }))
}

/** The threads of what the request names by its own id: a run, a schedule, a watch, a reply, messages. */
async function found(
  call: Call, { threadId, runId, messageIds }: PolicyQuestion, resourceId: string | undefined,
): Promise<NamedThread[]> {
  const { principal, params: { scheduleId, watchId, replyId } } = call
  const scope = resourceId === undefined ? {} : { resourceId }
  if (messageIds) {
    const runtime = (await memoryAgent(call)).threads()
    await runtime.open()
    return (await runtime.store.findMessages(messageIds, resourceId)).map((place) => ({ threadId: place.threadId, ...scope }))
  }
  const record = scheduleId !== undefined ? await call.agent.schedules.get({ id: scheduleId, ...scope })
    : watchId !== undefined ? await call.agent.getWatch({ id: watchId, ...scope })
      : replyId !== undefined ? await call.heed.channels.getReply({ id: replyId, ...scope })
        : runId !== undefined && threadId === undefined ? await runOf(call, runId) : null
  return record && mayAccess(principal, record.resourceId) ? [record] : []
}

async function runOf({ agent }: Call, runId: string): Promise<{ threadId: string; resourceId: string } | null> {
  const runtime = agent.threads()
  await runtime.open()
  return runtime.store.findRun(runId)
}

async function ownerOf(call: Call, threadId: string): Promise<string | undefined> {
  const { agentId, workflowId } = call.params
  const runtime = workflowId !== undefined ? call.heed.sites.of().threads
    : (agentId === undefined ? await memoryAgent(call) : call.agent).threads()
  await runtime.open()
  return (await runtime.store.getThread({ threadId }))?.resourceId
}

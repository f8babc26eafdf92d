import type { Agent } from '../../agent/agent.ts'
import { refused } from '../../base/arguments.ts'
import { HeedError, isHeedError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import { maxSuspended, type EphemeralRuns } from '../../heed/ephemeral-runs.ts'
import type { Memory } from '../../memory/memory.ts'
import type { ResourceMemory } from '../../memory/resource-memory.ts'
import type { RunRow, Scope } from '../../store/contract/threads.ts'
import { runIdTaken } from '../../thread/send/turns.ts'
import { mayAccess, resolveResource, type Principal } from '../auth/principal.ts'
import { isLimited } from '../auth/scopes.ts'
import type { Call } from '../route.ts'
import { id, record } from '../schema/schemas.ts'
import { threadNotFound } from './error-response.ts'

/** The threads and memories that a caller may access. */

/** The query of memory routes. */
export interface MemoryQuery {
  agentId?: string
  resourceId?: string
}

export const memoryQuery = { agentId: id, resourceId: id }

/** What existing clients repeat in a body from its query. */
export const memoryBody = { agentId: id, requestContext: record }

type MemoryCall = Pick<Call<unknown, MemoryQuery>, 'heed' | 'query' | 'body' | 'principal' | 'context' | 'params'>

/** The memory of the agent that is named by its id or its key, or of the first agent: most servers have one storage for all agents. */
export async function agentMemory(call: Pick<MemoryCall, 'heed' | 'query' | 'body' | 'context'>): Promise<Memory> {
  const agent = namedAgent(call)
  const requestContext = await call.context()
  return agent.getMemory(requestContext ? { requestContext } : {})
}

/** The agent of that memory, bound to the storage of the request. */
export async function memoryAgent(call: Pick<MemoryCall, 'heed' | 'query' | 'body' | 'context'>): Promise<Agent> {
  return namedAgent(call).forRequest((await call.context()) ?? {})
}

function namedAgent({ heed, query, body }: Pick<MemoryCall, 'heed' | 'query' | 'body'>): Agent {
  const inBody = isPlainObject(body) && typeof body.agentId === 'string' ? body.agentId : undefined
  const agentId = query.agentId ?? inBody
  if (inBody !== undefined && inBody !== agentId) throw refused('agentId', 'the same in the query and in the body')
  const agent = agentId === undefined ? Object.values(heed.listAgents())[0] : heed.findAgent(agentId)
  if (agent) return agent
  const message = agentId === undefined ? 'This server has no agent.' : `There is no agent '${agentId}'.`
  throw new HeedError('unknown_agent', message, { details: { agentId } })
}

/** The same memory, limited to the resource that the caller may access. */
export async function callerMemory(
  call: Omit<MemoryCall, 'params'>, resourceId = call.query.resourceId,
): Promise<Memory | ResourceMemory> {
  const resource = resolveResource(call.principal, resourceId)
  const memory = await agentMemory(call)
  if (resource === undefined) return memory
  const own = memory.forResource(resource)
  return isLimited(call.principal) ? own.withoutSystemRole() : own
}

/** The thread in the path, if the caller may access it. */
export async function requireCallerThread(call: MemoryCall, resourceId = call.query.resourceId): Promise<unknown> {
  return requireThread(await callerMemory(call, resourceId), { threadId: threadIdOf(call) })
}

/** Rejects a missing thread with the same error as a thread of another resource, so that ids can't be probed. */
export async function requireThread(memory: Pick<Memory | ResourceMemory, 'getThreadById'>, scope: Scope): Promise<unknown> {
  const thread = await memory.getThreadById(scope)
  if (!thread) throw threadNotFound(scope.threadId)
  return thread
}

/** Whether the thread exists; a thread of another resource does not, so that ids can't be probed. */
export async function hasThread(memory: Pick<Memory | ResourceMemory, 'getThreadById'>, scope: Scope): Promise<boolean> {
  try {
    return (await memory.getThreadById(scope)) !== null
  } catch (error) {
    if (isForbidden(error)) return false
    throw error
  }
}

/** The scope of the thread in the path; the thread has to exist. */
export async function existingScope(
  call: Pick<Call<unknown, unknown>, 'agent' | 'principal' | 'params'>, resourceId: string | undefined,
): Promise<Scope> {
  const scope = scopeOf(call.principal, threadIdOf(call), resourceId)
  await requireThread(await call.agent.getMemory(), scope)
  return scope
}

export function scopeOf(principal: Principal, threadId: string, resourceId: string | undefined): { threadId: string; resourceId?: string } {
  const resource = resolveResource(principal, resourceId)
  return { threadId, ...(resource === undefined ? {} : { resourceId: resource }) }
}

export function threadIdOf({ params }: { params: Readonly<Record<string, string>> }): string {
  return params.threadId ?? ''
}

/** The result of a read; `none` for a thread that does not exist yet, and for one of another resource, so that ids can't be probed. */
export async function unlessMissing<Found, None>(reading: Promise<Found>, none: None): Promise<Found | None> {
  try {
    return await reading
  } catch (error) {
    if (isForbidden(error) || (isHeedError(error) && error.code === 'thread_not_found')) return none
    throw error
  }
}

/**
 * The result of a change; `none`, which is what a missing thread gives, for a thread of another resource, so that ids can't be probed. A
 * principal that may access all resources gets the actual error.
 */
export async function unlessForeign<Done, None>(
  { principal }: { principal: Principal }, change: Promise<Done>, none: () => None,
): Promise<Done | None> {
  try {
    return await change
  } catch (error) {
    if (isForbidden(error) && principal.resources !== '*') return none()
    throw error
  }
}

/** True for the error about a thread of another resource. */
export function isForbidden(error: unknown): boolean {
  return isHeedError(error) && error.code === 'thread_forbidden'
}

/** The run with this id, if it is of this agent and of a resource that the caller may access; otherwise undefined. */
export async function findCallerRun(
  { agent, principal }: { agent: Agent; principal: Principal }, runId: string,
): Promise<RunRow | undefined> {
  const runtime = agent.threads()
  await runtime.open()
  const run = await runtime.store.findRun(runId)
  return run && run.agentId === agent.id && mayAccess(principal, run.resourceId) ? run : undefined
}

/** Who began the runs without a thread: nothing of them is stored, and only their callers may decide about them. */
export class RunCallers {
  /** Oldest first. */
  readonly #began = new Map<string, { caller: string; runs: EphemeralRuns }>()
  /** How many of them each caller began. */
  readonly #counts = new Map<string, number>()
  readonly #limit: number

  constructor(limit = maxSuspended) {
    this.#limit = limit
  }

  /** Beyond the limit, the oldest of the caller that began the most is forgotten: one caller displaces no run of another. */
  add(runId: string, { id: caller }: Principal, runs: EphemeralRuns): void {
    const known = this.#began.get(runId)
    if (known && known.caller !== caller) throw runIdTaken(runId)
    if (!known) this.#counts.set(caller, (this.#counts.get(caller) ?? 0) + 1)
    this.#began.set(runId, { caller, runs })
    if (this.#began.size > this.#limit) this.#forgetOne()
  }

  /** Whether the principal began the run, or may access every resource. */
  mayDecide(runId: string, principal: Principal): boolean {
    const caller = this.#began.get(runId)?.caller
    return caller !== undefined && (caller === principal.id || principal.resources === '*')
  }

  #forgetOne(): void {
    let [most, count] = ['', 0]
    for (const [caller, began] of this.#counts) if (began > count) [most, count] = [caller, began]
    for (const [runId, { caller, runs }] of this.#began) {
      if (caller !== most) continue
      this.#began.delete(runId)
      if (count > 1) this.#counts.set(most, count - 1)
      else this.#counts.delete(most)
      return runs.forget(runId)
    }
  }
}

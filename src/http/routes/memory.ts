import type { JSONObject } from '../../base/json.ts'
import { HeedError } from '../../base/errors.ts'
import type { Memory } from '../../memory/memory.ts'
import { parseRecallOptions } from '../../memory/semantic/setting.ts'
import { windowOf } from '../../memory/options.ts'
import type { WorkingMemoryTarget } from '../../memory/working-memory/access.ts'
import { parseWorkingMemory } from '../../memory/working-memory/setting.ts'
import type { MemoryOptions } from '../../run/options.ts'
import { resolveResource } from '../auth/principal.ts'
import {
  agentMemory, callerMemory, isForbidden, memoryQuery, requireCallerThread, threadIdOf, type MemoryQuery,
} from '../request/access.ts'
import { omitUndefined } from '../request/fields.ts'
import { route, type Call, type Route } from '../route.ts'
import * as responses from '../schema/response-schemas.ts'
import { flag, id, ignored, limit, object, text } from '../schema/schemas.ts'

interface WorkingMemoryUpdate {
  workingMemory: string | JSONObject
  resourceId?: string
  replace?: boolean
  delete?: string[]
  expectedVersion?: number
}

/** Of routes about the memory of an agent, whichever resource is asked for. */
const aboutAgent = { agentId: id, resourceId: ignored }
const workingMemoryPath = '/memory/threads/:threadId/working-memory'
const version = { type: 'integer', minimum: 0 }
const update = object(
  { workingMemory: {}, resourceId: id, replace: flag, delete: { type: 'array', items: text, maxItems: 1_000 }, expectedVersion: version },
  ['workingMemory'],
)

/** Working memory, and the configuration of a memory. */
export const memory: readonly Route[] = [
  route<never, MemoryQuery>({
    method: 'GET',
    path: workingMemoryPath,
    summary: 'The working memory of a thread, or of its resource',
    response: 'json',
    responseSchema: responses.workingMemory,
    read: true,
    query: object(memoryQuery),
    handle: readWorkingMemory,
  }),
  route<WorkingMemoryUpdate, MemoryQuery>({
    method: 'POST',
    path: workingMemoryPath,
    summary: 'Changes the working memory',
    response: 'json',
    responseSchema: responses.changedWorkingMemory,
    query: object(memoryQuery),
    body: update,
    async handle(call) {
      const { workingMemory, resourceId, replace, delete: removed, expectedVersion } = call.body
      const { memory, target } = await workingMemoryTarget(call, resourceId ?? call.query.resourceId)
      const options = omitUndefined({ replace, delete: removed, expectedVersion })
      const changed = await memory.updateWorkingMemory({ ...target, workingMemory, ...options })
      return { success: true, version: changed.version }
    },
  }),
  route<never, MemoryQuery & { limit?: number; before?: number }>({
    method: 'GET',
    path: `${workingMemoryPath}/versions`,
    summary: 'Versions of the working memory, newest first',
    response: 'json',
    responseSchema: responses.workingMemoryVersions,
    read: true,
    query: object({ ...memoryQuery, limit, before: version }),
    async handle(call) {
      const { memory, target } = await workingMemoryTarget(call, call.query.resourceId)
      const { limit, before } = call.query
      return { versions: await memory.listWorkingMemoryVersions({ ...target, ...omitUndefined({ limit, before }) }) }
    },
  }),
  route<{ resourceId?: string; version?: number; expectedVersion?: number }, MemoryQuery>({
    method: 'POST',
    path: `${workingMemoryPath}/undo`,
    summary: 'Restores a version of the working memory, or the previous one',
    response: 'json',
    responseSchema: responses.undoneWorkingMemory,
    query: object(memoryQuery),
    body: object({ resourceId: id, version, expectedVersion: version }),
    async handle(call) {
      const { resourceId, ...change } = call.body
      const { memory, target } = await workingMemoryTarget(call, resourceId ?? call.query.resourceId)
      return memory.undoWorkingMemory({ ...target, ...change })
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET',
    path: '/memory/status',
    summary: 'Whether the agent has a memory',
    response: 'json',
    responseSchema: responses.memoryStatus,
    query: object(aboutAgent),
    async handle(call) {
      await agentMemory(call)
      return { result: true, memoryType: 'local' }
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET',
    path: '/memory/config',
    summary: 'The options of a memory',
    response: 'json',
    responseSchema: responses.memoryConfig,
    query: object(aboutAgent),
    handle: async (call) => ({ config: describeOptions((await agentMemory(call)).options) }),
  }),
  route<never, MemoryQuery>({
    method: 'GET',
    path: '/memory/observational-memory',
    summary: 'Always rejected: no agent of this server has one',
    response: 'json',
    responseSchema: responses.neverAnswered,
    query: object({ ...memoryQuery, threadId: id }),
    handle() {
      throw new HeedError('unsupported_option', 'Observational memory is not enabled for this agent.')
    },
  }),
]

async function readWorkingMemory(call: Call<unknown, MemoryQuery>): Promise<object> {
  const threadId = threadIdOf(call)
  const memory = await agentMemory(call)
  const setting = parseWorkingMemory(memory.options)
  const resourceId = resolveResource(call.principal, call.query.resourceId)
  // A thread that is missing, or of another resource, has no working memory; the caller's resource may still have one.
  const threadExists = await (await callerMemory(call)).getThreadById({ threadId }).then((thread) => thread !== null, (error: unknown) => {
    if (isForbidden(error)) return false
    throw error
  })
  const exists = threadExists || (setting?.scope === 'resource' && resourceId !== undefined)
  const target = { ...(threadExists ? { threadId } : {}), ...omitUndefined({ resourceId }) }
  return {
    workingMemory: exists && setting ? await memory.getWorkingMemory(target) : null,
    source: setting?.scope ?? 'thread',
    workingMemoryTemplate: setting && 'template' in setting.form ? { format: 'markdown', content: setting.form.template } : null,
    threadExists,
  }
}

/** The memory and target of a change. Rejects a thread that is missing or of another resource. */
async function workingMemoryTarget(
  call: Call<unknown, MemoryQuery>, resourceId: string | undefined,
): Promise<{ memory: Memory; target: WorkingMemoryTarget }> {
  await requireCallerThread(call, resourceId)
  const target = { threadId: threadIdOf(call), ...omitUndefined({ resourceId: resolveResource(call.principal, resourceId) }) }
  return { memory: await agentMemory(call), target }
}

function describeOptions(options: MemoryOptions): object {
  const window = windowOf(options)
  const { topK, before, after, scope } = parseRecallOptions(options, { placed: true }) ?? {}
  const working = parseWorkingMemory(options)
  const template = working && 'template' in working.form ? { template: working.form.template } : {}
  return {
    lastMessages: window === false ? false : window.low,
    semanticRecall: topK === undefined ? false : { topK, messageRange: { before, after }, scope },
    workingMemory: working ? { enabled: true, scope: working.scope, ...template } : { enabled: false },
    generateTitle: options.generateTitle !== undefined && options.generateTitle !== false,
    observationalMemory: { enabled: false },
  }
}

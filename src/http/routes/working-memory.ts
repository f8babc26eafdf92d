import type { JSONObject } from '../../base/json.ts'
import type { WorkingMemoryTarget } from '../../memory/working-memory/access.ts'
import type { Memory } from '../../memory/memory.ts'
import { workingMemoryIn } from '../../memory/working-memory/setting.ts'
import { HeedError } from '../../base/errors.ts'
import * as shapes from '../schema/answer-schemas.ts'
import { memoryOf, ownMemory, type MemoryQuery } from './memory-of.ts'
import { resourceOf } from '../auth/principal.ts'
import { route, type Call, type Route } from '../route.ts'
import { closed, flag, id, limit, object, text } from '../schema/schemas.ts'
import { isForbidden } from './unseen-thread.ts'
import { given, of, threadOf } from './threads.ts'

interface Update {
  workingMemory: string | JSONObject
  resourceId?: string
  replace?: boolean
  delete?: string[]
  expectedVersion?: number
}

const path = '/memory/threads/:threadId/working-memory'
const version = { type: 'integer', minimum: 0 }

/** What is kept in mind, on a thread or for its resource. */
export const workingMemory: readonly Route[] = [
  route<never, MemoryQuery>({
    method: 'GET', path, summary: 'The working memory of a thread, or of its resource', answer: 'json', answers: shapes.workingMemory, read: true, query: object(of),
    async handle(call) {
      const threadId = threadOf(call)
      const memory = await memoryOf(call)
      const setting = workingMemoryIn(memory.options)
      const resourceId = resourceOf(call.principal, call.query.resourceId)
      // A thread that isn't there yet, or is another's, has none of its own; what is known of the resource is known all the same.
      const threadExists = await (await ownMemory(call)).getThreadById({ threadId }).then((thread) => thread !== null, (error: unknown) => {
        if (isForbidden(error)) return false
        throw error
      })
      const known = threadExists || (setting?.scope === 'resource' && resourceId !== undefined)
      const target = { ...(threadExists ? { threadId } : {}), ...given({ resourceId }) }
      return { workingMemory: known && setting ? await memory.getWorkingMemory(target) : null, source: setting?.scope ?? 'thread', workingMemoryTemplate: templateOf(setting), threadExists }
    },
  }),
  route<Update, MemoryQuery>({
    method: 'POST', path, summary: 'Changes the working memory', answer: 'json', answers: shapes.changedWorkingMemory, query: object(of),
    body: object({ workingMemory: {}, resourceId: id, replace: flag, delete: { type: 'array', items: text, maxItems: 1_000 }, expectedVersion: version }, ['workingMemory']),
    async handle(call) {
      const { workingMemory: words, resourceId, replace, delete: removed, expectedVersion } = call.body
      const { memory, target } = await reached(call, resourceId ?? call.query.resourceId)
      const changed = await memory.updateWorkingMemory({ ...target, workingMemory: words, ...given({ replace, delete: removed, expectedVersion }) })
      return { success: true, version: changed.version }
    },
  }),
  route<never, MemoryQuery & { limit?: number; before?: number }>({
    method: 'GET', path: `${path}/versions`, summary: 'Versions of the working memory, newest first', answer: 'json', read: true, query: object({ ...of, limit, before: version }),
    async handle(call) {
      const { memory, target } = await reached(call, call.query.resourceId)
      const { limit: most, before } = call.query
      return { versions: await memory.listWorkingMemoryVersions({ ...target, ...given({ limit: most, before }) }) }
    },
  }),
  route<{ resourceId?: string; version?: number; expectedVersion?: number }, MemoryQuery>({
    method: 'POST', path: `${path}/undo`, summary: 'Goes back to a version, or to the one before', answer: 'json', query: object(of), body: closed({ resourceId: id, version, expectedVersion: version }),
    async handle(call) {
      const { resourceId, ...change } = call.body
      const { memory, target } = await reached(call, resourceId ?? call.query.resourceId)
      return memory.undoWorkingMemory({ ...target, ...change })
    },
  }),
]

/** Refuses a thread of somebody else, and one that isn't there. */
async function reached(call: Call<unknown, MemoryQuery>, resourceId: string | undefined): Promise<{ memory: Memory; target: WorkingMemoryTarget }> {
  const threadId = threadOf(call)
  if (!(await (await ownMemory(call, resourceId)).getThreadById({ threadId }))) throw new HeedError('thread_not_found', 'There is no such thread.', { details: { threadId } })
  return { memory: await memoryOf(call), target: { threadId, ...given({ resourceId: resourceOf(call.principal, resourceId) }) } }
}

function templateOf(setting: ReturnType<typeof workingMemoryIn>): { format: 'markdown'; content: string } | null {
  return setting && 'template' in setting.form ? { format: 'markdown', content: setting.form.template } : null
}

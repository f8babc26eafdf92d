import { HeedError } from '../../../base/errors.ts'
import type { AgentOverrides, AgentVersion } from '../../../editor/contract.ts'
import { asked, dated, versionIn } from '../../editor-routes.ts'
import { omitUndefined } from '../../request/fields.ts'
import { route, type Call, type Route } from '../../route.ts'
import * as responses from '../../schema/response-schemas.ts'
import { anything, flag, id, object, page, perPage, record } from '../../schema/schemas.ts'

/** What is edited of an agent, as existing clients send it. `name` and `model` are code's, and are left out of what is saved. */
interface Edited extends AgentOverrides {
  id?: string
  name?: unknown
  model?: unknown
  changeMessage?: string
  autoPublish?: boolean
}

interface Page {
  page?: number
  perPage?: number
}

interface VersionPage extends Page {
  orderBy?: { field?: 'versionNumber' | 'createdAt'; direction?: 'ASC' | 'DESC' }
}

type Asked = Pick<Call<unknown, unknown>, 'heed' | 'principal' | 'context'>

const all = '/stored/agents'
const one = `${all}/:agentId`
const ofVersion = `${one}/versions/:version`
const changeMessage = { type: 'string', minLength: 1, maxLength: 4_096 }
const fields = { name: anything, model: anything, instructions: anything, tools: record, changeMessage, autoPublish: flag }
const paged = { page, perPage }
const status = { enum: ['draft', 'published'], description: 'draft: the latest version. Defaults to what runs get.' }
const orderBy = object({ field: { enum: ['versionNumber', 'createdAt'] }, direction: { enum: ['ASC', 'DESC'] } })
const number = { type: 'integer', minimum: 0, maximum: 1_000_000_000 }

/** Versions of agents by the routes of existing clients, over the calls of the editor. A stored agent is one of code that has versions. */
export const storedAgents: readonly Route[] = [
  route<never, Page>({
    method: 'GET', path: all, summary: 'The agents that have versions, as existing clients list them', response: 'json', read: true,
    responseSchema: responses.storedAgentPage, query: object(paged),
    async handle(call) {
      const edited = (await call.heed.getEditor().list(await asked(call))).filter(({ latest }) => latest > 0)
      const { items, ...about } = pageOf(edited, call.query)
      return { agents: await Promise.all(items.map((agent) => storedAgent(call, agent.id))), ...about }
    },
  }),
  route<Edited>({
    method: 'POST', path: all, summary: 'Stores the first version of an agent', response: 'json', responseSchema: responses.storedAgent,
    body: object({ id, ...fields }, ['id']),
    handle(call) {
      const { id: name = '' } = call.body
      const agent = call.heed.findAgent(name)
      if (agent) return saved(call, agent.id, null)
      throw new HeedError('unknown_agent', `There is no agent '${name}': agents are made in code.`, { details: { agentId: name } })
    },
  }),
  route<never, { status?: 'draft' | 'published' }>({
    method: 'GET', path: one, summary: 'What runs of an agent get, or its latest version', response: 'json', read: true,
    responseSchema: responses.storedAgent, query: object({ status }),
    handle: (call) => storedAgent(call, call.agent.id, call.query.status),
  }),
  route<Edited>({
    method: 'PATCH', path: one, summary: 'Stores a draft with these fields changed', response: 'json',
    responseSchema: responses.storedAgent, body: object(fields),
    handle: async (call) => saved(call, call.agent.id, await latestOf(call, call.agent.id)),
  }),
  route<never>({
    method: 'DELETE', path: one, summary: 'Deletes all versions of an agent that runs do not get', response: 'json',
    responseSchema: responses.editDone,
    async handle(call) {
      await call.heed.getEditor().delete(call.agent.id, { by: call.principal.id, ...(await asked(call)) })
      return { success: true, message: 'The versions were deleted.' }
    },
  }),
  route<never, VersionPage>({
    method: 'GET', path: `${one}/versions`, summary: 'The versions of an agent by page, newest first', response: 'json', read: true,
    responseSchema: responses.storedVersionPage, query: object({ ...paged, orderBy }),
    async handle(call) {
      const found = await versionsOf(call, call.agent.id)
      const { items, ...about } = pageOf(call.query.orderBy?.direction === 'ASC' ? found.toReversed() : found, call.query)
      return { versions: items.map((version) => versionForm(version, call.agent.name)), ...about }
    },
  }),
  route<Edited>({
    method: 'POST', path: `${one}/versions`, summary: 'Stores a draft; one with the contents of the latest version is that version',
    response: 'json', responseSchema: responses.storedVersion, body: object(fields),
    async handle(call) {
      await saved(call, call.agent.id, await latestOf(call, call.agent.id))
      return versionForm(await latestOf(call, call.agent.id), call.agent.name)
    },
  }),
  route<never, { from: number; to: number }>({
    method: 'GET', path: `${one}/versions/compare`, summary: 'What differs between two versions', response: 'json', read: true,
    responseSchema: responses.storedDifferences, query: object({ from: number, to: number }, ['from', 'to']),
    async handle(call) {
      const { from, to } = call.query
      const found = await call.heed.getEditor().compare(call.agent.id, { from, to, ...(await asked(call)) })
      const [fromVersion, toVersion] = await Promise.all([from, to].map(
        async (version) => (version === 0 ? null : versionForm(await requireVersion(call, call.agent.id, version), call.agent.name)),
      ))
      const diffs = found.map(({ field, from: previousValue, to: currentValue }) => ({ field, previousValue, currentValue }))
      return { diffs, fromVersion, toVersion }
    },
  }),
  route<never>({
    method: 'GET', path: ofVersion, summary: 'One version of an agent, as existing clients read it', response: 'json', read: true,
    responseSchema: responses.storedVersion,
    handle: async (call) => versionForm(await requireVersion(call, call.agent.id, versionIn(call)), call.agent.name),
  }),
  route<never>({
    method: 'DELETE', path: ofVersion, summary: 'Deletes a version that runs do not get', response: 'json',
    responseSchema: responses.editDone,
    async handle(call) {
      const version = versionIn(call)
      await call.heed.getEditor().delete(call.agent.id, { version, by: call.principal.id, ...(await asked(call)) })
      return { success: true, message: 'The version was deleted.' }
    },
  }),
  route<never>({
    method: 'POST', path: `${ofVersion}/activate`, summary: 'Lets runs that begin from now on have a version', response: 'json',
    responseSchema: responses.editDone,
    async handle(call) {
      const version = versionIn(call)
      await publish(call, call.agent.id, version)
      return { success: true, message: `Runs get version ${version}.`, activeVersionId: String(version) }
    },
  }),
  route<never>({
    method: 'POST', path: `${ofVersion}/restore`, summary: 'Stores a draft with the contents of an earlier version', response: 'json',
    responseSchema: responses.storedVersion,
    async handle(call) {
      const { overrides } = await requireVersion(call, call.agent.id, versionIn(call))
      const { version: base } = await latestOf(call, call.agent.id)
      const draft = { ...overrides, base, by: call.principal.id, why: `Restores version ${versionIn(call)}.`, ...(await asked(call)) }
      return versionForm(await call.heed.getEditor().save(call.agent.id, draft), call.agent.name)
    },
  }),
]

/** Stores a draft on top of the version that was read: where another was stored meanwhile, the editor rejects it. */
async function saved(call: Asked & { body: Edited }, agentId: string, latest: AgentVersion | null): Promise<object> {
  const { id: _, changeMessage: why, autoPublish, ...edited } = call.body
  const about = { base: latest?.version ?? 0, by: call.principal.id, ...omitUndefined({ why }) }
  const draft = { ...latest?.overrides, ...omitUndefined(edited), ...about }
  const { version, stripped } = await call.heed.getEditor().save(agentId, { ...draft, ...(await asked(call)) })
  if (autoPublish === true) await publish(call, agentId, version)
  return { ...(await storedAgent(call, agentId, 'draft')), stripped }
}

/** A release that was made meanwhile is not undone: the editor rejects this one. */
async function publish(call: Asked, agentId: string, version: number): Promise<void> {
  const request = await asked(call)
  const { release } = await call.heed.getEditor().describe(agentId, request)
  await call.heed.getEditor().publish(agentId, { version, expected: release?.release ?? 0, by: call.principal.id, ...request })
}

async function storedAgent(call: Asked, agentId: string, which: 'draft' | 'published' = 'published'): Promise<object> {
  const { latest, release, name, code } = await call.heed.getEditor().describe(agentId, await asked(call))
  if (!latest) throw withoutVersions(agentId)
  const active = release?.version ?? 0
  const shown = which === 'draft' ? latest : active > 0 ? await requireVersion(call, agentId, active) : null
  const { instructions = code.instructions.join('\n\n'), tools = {} } = shown?.overrides ?? {}
  return {
    id: agentId, name, instructions, tools, status: active > 0 ? 'published' : 'draft', updatedAt: new Date(latest.createdAt),
    ...(active > 0 ? { activeVersionId: String(active) } : {}), ...(shown ? { resolvedVersionId: String(shown.version) } : {}),
  }
}

async function latestOf(call: Asked, agentId: string): Promise<AgentVersion> {
  const { versions: [latest] } = await call.heed.getEditor().listVersions(agentId, { limit: 1, ...(await asked(call)) })
  if (!latest) throw withoutVersions(agentId)
  return latest
}

async function versionsOf(call: Asked, agentId: string): Promise<AgentVersion[]> {
  const found: AgentVersion[] = []
  const request = await asked(call)
  for (let before: number | undefined, more = true; more;) {
    const { versions, next } = await call.heed.getEditor().listVersions(agentId, { limit: 1_000, ...omitUndefined({ before }), ...request })
    found.push(...versions)
    more = next !== undefined
    before = next
  }
  return found
}

async function requireVersion(call: Asked, agentId: string, version: number): Promise<AgentVersion> {
  const found = await call.heed.getEditor().getVersion(agentId, version, await asked(call))
  if (found) return found
  throw new HeedError('unknown_version', `Agent '${agentId}' has no version ${version}.`, { details: { agentId, version } })
}

/** The id of a version is its number. */
function versionForm(found: AgentVersion, name: string): object {
  const { agentId, version, base, by, why, overrides, createdAt } = dated(found)
  return {
    id: String(version), agentId, versionNumber: version, name, base, by, createdAt, ...overrides,
    ...omitUndefined({ changeMessage: why }),
  }
}

function pageOf<Item>(found: readonly Item[], { page: number = 0, perPage: size = 20 }: Page) {
  const items = found.slice(number * size, (number + 1) * size)
  return { items, total: found.length, page: number, perPage: size, hasMore: (number + 1) * size < found.length }
}

function withoutVersions(agentId: string): HeedError {
  return new HeedError('unknown_version', `Agent '${agentId}' has no versions: its runs are as in code.`, { details: { agentId } })
}

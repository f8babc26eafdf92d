import type { AgentOverrides, ReleaseRule, TriedVersion } from '../editor/contract.ts'
import { HeedError } from '../base/errors.ts'
import type { RequestContext } from '../run/request-context.ts'
import { omitUndefined } from './request/fields.ts'
import { route, type Call, type Route } from './route.ts'
import * as responses from './schema/response-schemas.ts'
import { anything, id, limit, object, record } from './schema/schemas.ts'

const number = { type: 'integer', minimum: 0, maximum: 1_000_000_000 }
const why = { type: 'string', minLength: 1, maxLength: 4_096 }
const scalars = { type: 'array', items: anything, minItems: 1, maxItems: 1_000 }
const rule = object({
  version: number, context: { type: 'object', additionalProperties: scalars }, resources: { type: 'array', items: id, maxItems: 1_000 },
  percent: { type: 'number', minimum: 0, maximum: 100 },
}, ['version'])
const page = { before: { ...number, minimum: 1 }, limit }
const tried = { anyOf: [number, { const: 'draft' }] }

interface Page {
  before?: number
  limit?: number
}

interface Preview {
  instructions?: AgentOverrides['instructions']
  version?: TriedVersion
  drafts?: boolean
}

interface Draft {
  base: number
  overrides: AgentOverrides
  why?: string
}

interface NewRelease {
  version: number
  expected: number
  rules?: ReleaseRule[]
  why?: string
}

/**
 * Versions of agents. They need the scope `edit`, which a principal has by name: what is published reaches the runs of all resources. The
 * author is the principal.
 */
export const editor: readonly Route[] = [
  route<never>({
    method: 'GET', path: '/agents/:agentId/editor', summary: 'What may be edited of an agent, its latest version and its newest release',
    response: 'json', responseSchema: responses.editableAgent, read: true,
    async handle(call) {
      const { latest, release, ...rest } = await call.heed.getEditor().describe(call.agent.id, await asked(call))
      return { ...rest, latest: latest && dated(latest), release: release && dated(release) }
    },
  }),
  route<never>({
    method: 'GET', path: '/editor/agents', summary: 'The agents that may be edited, and what their runs get',
    response: 'json', responseSchema: responses.editedAgents, read: true,
    async handle(call) {
      const agents = await call.heed.getEditor().list(await asked(call))
      return { agents: agents.map((agent) => ({ ...agent, release: agent.release && dated(agent.release) })) }
    },
  }),
  route<never, Page & { deleted?: boolean }>({
    method: 'GET', path: '/agents/:agentId/versions', summary: 'The versions of an agent, newest first; or those that were deleted',
    response: 'json', responseSchema: responses.versionPage, read: true, query: object({ ...page, deleted: { type: 'boolean' } }),
    async handle(call) {
      const { versions, ...next } = await call.heed.getEditor().listVersions(call.agent.id, { ...call.query, ...(await asked(call)) })
      return { versions: versions.map(dated), ...next }
    },
  }),
  route<Draft>({
    method: 'POST', path: '/agents/:agentId/versions', summary: 'Stores a draft on top of the latest version',
    response: 'json', responseSchema: responses.savedVersion, body: object({ base: number, overrides: record, why }, ['base', 'overrides']),
    async handle(call) {
      const { base, overrides, why } = call.body
      for (const name of ['base', 'by', 'why', 'requestContext']) if (Object.hasOwn(overrides, name)) throw notAnOverride(name)
      const draft = { ...overrides, base, by: call.principal.id, ...omitUndefined({ why }), ...(await asked(call)) }
      return dated(await call.heed.getEditor().save(call.agent.id, draft))
    },
  }),
  route<Preview>({
    method: 'POST', path: '/agents/:agentId/versions/preview', summary: 'The instructions that a run with the request context would have',
    response: 'json', responseSchema: responses.previewedInstructions, read: true,
    body: object({ instructions: anything, version: tried, drafts: { type: 'boolean' }, requestContext: record }),
    async handle(call) {
      const { instructions, version, drafts } = call.body
      return call.heed.getEditor().preview(call.agent.id, { ...omitUndefined({ instructions, version, drafts }), ...(await asked(call)) })
    },
  }),
  route<never, { why?: string }>({
    method: 'DELETE', path: '/agents/:agentId/versions/:version', summary: 'Deletes a version that runs do not get',
    response: 'json', responseSchema: responses.deletedVersions, query: object({ why }),
    async handle(call) {
      const given = { version: versionIn(call), by: call.principal.id, ...omitUndefined({ why: call.query.why }), ...(await asked(call)) }
      return { deleted: await call.heed.getEditor().delete(call.agent.id, given) }
    },
  }),
  route<never, { from: number; to: number }>({
    method: 'GET', path: '/agents/:agentId/versions/compare', summary: 'What differs between two versions; 0 is code without overrides',
    response: 'json', responseSchema: responses.editDifferences, read: true, query: object({ from: number, to: number }, ['from', 'to']),
    handle: async (call) => ({
      differences: await call.heed.getEditor().compare(call.agent.id, { ...call.query, ...(await asked(call)) }),
    }),
  }),
  route<never>({
    method: 'GET', path: '/agents/:agentId/versions/:version', summary: 'One version',
    response: 'json', responseSchema: responses.agentVersion, read: true,
    async handle(call) {
      const version = versionIn(call)
      const found = await call.heed.getEditor().getVersion(call.agent.id, version, await asked(call))
      if (!found) throw new HeedError('unknown_version', `Agent '${call.agent.id}' has no version ${version}.`)
      return dated(found)
    },
  }),
  route<never, Page>({
    method: 'GET', path: '/agents/:agentId/releases', summary: 'Who changed what runs get, when, why and to what; newest first',
    response: 'json', responseSchema: responses.releasePage, read: true, query: object(page),
    async handle(call) {
      const { releases, ...next } = await call.heed.getEditor().listReleases(call.agent.id, { ...call.query, ...(await asked(call)) })
      return { releases: releases.map(dated), ...next }
    },
  }),
  route<NewRelease>({
    method: 'POST', path: '/agents/:agentId/releases', summary: 'Lets runs that begin from now on have a version',
    response: 'json', responseSchema: responses.release,
    body: object({ version: number, expected: number, rules: { type: 'array', items: rule, maxItems: 64 }, why }, ['version', 'expected']),
    async handle(call) {
      const given = { ...call.body, by: call.principal.id, ...(await asked(call)) }
      return dated(await call.heed.getEditor().publish(call.agent.id, given))
    },
  }),
  route<{ expected: number; to?: number; why?: string }>({
    method: 'POST', path: '/agents/:agentId/releases/rollback', summary: 'Lets runs have again what they had with an earlier release',
    response: 'json', responseSchema: responses.release, body: object({ expected: number, to: number, why }, ['expected']),
    async handle(call) {
      const given = { ...call.body, by: call.principal.id, ...(await asked(call)) }
      return dated(await call.heed.getEditor().rollBack(call.agent.id, given))
    },
  }),
]

/** The number of a version in the path. */
export function versionIn({ params: { version = '' } }: { params: Readonly<Record<string, string>> }): number {
  if (/^[1-9]\d{0,8}$/.test(version)) return Number(version)
  throw new HeedError('unknown_version', `There is no version ${version.slice(0, 16)}: versions are numbered from 1.`)
}

/** The context of the request, where it has one: it may choose the storage of the agent. */
export async function asked(call: Pick<Call<unknown, unknown>, 'context'>): Promise<{ requestContext?: RequestContext }> {
  const requestContext = await call.context()
  return requestContext ? { requestContext } : {}
}

export function dated<Row extends { createdAt: number }>(row: Row): Omit<Row, 'createdAt'> & { createdAt: Date } {
  return { ...row, createdAt: new Date(row.createdAt) }
}

function notAnOverride(name: string): HeedError {
  return new HeedError('unsupported_option', `overrides has no '${name}'. Known: instructions, tools.`, { details: { option: name } })
}

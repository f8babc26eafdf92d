import { HeedError } from '../base/errors.ts'
import type { ContextRules } from '../editor/contract.ts'
import { asked, dated, versionIn } from './editor-routes.ts'
import { omitUndefined } from './request/fields.ts'
import { route, type Call, type Route } from './route.ts'
import * as responses from './schema/response-schemas.ts'
import { id, limit, object, record } from './schema/schemas.ts'

const text = { type: 'string' }
const number = { type: 'integer', minimum: 0, maximum: 1_000_000_000 }
const why = { type: 'string', minLength: 1, maxLength: 4_096 }
/** The agent whose storage has the block; without it, the storage of the Heed. */
const agentId = id
const page = { before: { ...number, minimum: 1 }, limit, agentId }

interface OfAgent {
  agentId?: string
}

interface Page extends OfAgent {
  before?: number
  limit?: number
}

interface Draft extends OfAgent {
  base: number
  content: string
  rules?: ContextRules
  description?: string
  why?: string
}

const one = '/prompt-blocks/:blockId'

/** Prompt blocks. They need the scope `edit`, as versions of agents do. The author is the principal. */
export const promptBlocks: readonly Route[] = [
  route<never, OfAgent & { after?: string; limit?: number }>({
    method: 'GET', path: '/prompt-blocks', summary: 'The prompt blocks, by their ids',
    response: 'json', responseSchema: responses.promptBlocks, read: true, query: object({ after: id, limit, agentId }),
    async handle(call) {
      const { blocks, ...next } = await promptsOf(call).list({ ...call.query, ...(await asked(call)) })
      return { blocks: blocks.map(describedOf), ...next }
    },
  }),
  route<never, OfAgent>({
    method: 'GET', path: one, summary: 'A prompt block: its latest version, what runs get, and the agents that refer to it',
    response: 'json', responseSchema: responses.promptBlock, read: true, query: object({ agentId }),
    handle: async (call) => describedOf(await promptsOf(call).describe(blockIn(call), await ofAgent(call, call.query))),
  }),
  route<never, OfAgent & { why?: string }>({
    method: 'DELETE', path: one, summary: 'Deletes a prompt block that no agent refers to',
    response: 'json', responseSchema: responses.deletedVersions, query: object({ agentId, why }),
    async handle(call) {
      const given = { ...authorOf(call, call.query.why), ...(await ofAgent(call, call.query)) }
      return { deleted: await promptsOf(call).delete(blockIn(call), given) }
    },
  }),
  route<OfAgent & { as: string; version?: number; why?: string }>({
    method: 'POST', path: `${one}/clone`, summary: 'Stores a version of a prompt block as a draft of another one',
    response: 'json', responseSchema: responses.savedPromptBlock, body: object({ as: id, version: number, why, agentId }, ['as']),
    async handle(call) {
      const { as, version, why } = call.body
      const given = { as, ...omitUndefined({ version }), ...authorOf(call, why), ...(await ofAgent(call, call.body)) }
      return dated(await promptsOf(call).clone(blockIn(call), given))
    },
  }),
  route<never, Page & { deleted?: boolean }>({
    method: 'GET', path: `${one}/versions`, summary: 'The versions of a prompt block, newest first; or those that were deleted',
    response: 'json', responseSchema: responses.promptBlockVersions, read: true, query: object({ ...page, deleted: { type: 'boolean' } }),
    async handle(call) {
      const { versions, ...next } = await promptsOf(call).listVersions(blockIn(call), { ...call.query, ...(await asked(call)) })
      return { versions: versions.map(dated), ...next }
    },
  }),
  route<Draft>({
    method: 'POST', path: `${one}/versions`, summary: 'Stores a draft of a prompt block on top of its latest version',
    response: 'json', responseSchema: responses.savedPromptBlock,
    body: object({ base: number, content: text, rules: record, description: text, why, agentId }, ['base', 'content']),
    async handle(call) {
      const { base, content, rules, description, why } = call.body
      const block = { content, ...omitUndefined({ rules, description }) }
      const given = { ...block, base, ...authorOf(call, why), ...(await ofAgent(call, call.body)) }
      return dated(await promptsOf(call).save(blockIn(call), given))
    },
  }),
  route<never, OfAgent & { from: number; to: number }>({
    method: 'GET', path: `${one}/versions/compare`, summary: 'What differs between two versions of a prompt block',
    response: 'json', responseSchema: responses.editDifferences, read: true,
    query: object({ from: number, to: number, agentId }, ['from', 'to']),
    handle: async (call) => ({ differences: await promptsOf(call).compare(blockIn(call), { ...call.query, ...(await asked(call)) }) }),
  }),
  route<never, OfAgent>({
    method: 'GET', path: `${one}/versions/:version`, summary: 'One version of a prompt block',
    response: 'json', responseSchema: responses.promptBlockVersion, read: true, query: object({ agentId }),
    async handle(call) {
      const version = versionIn(call)
      const found = await promptsOf(call).getVersion(blockIn(call), version, await ofAgent(call, call.query))
      if (!found) throw new HeedError('unknown_version', `Prompt block '${blockIn(call)}' has no version ${version}.`)
      return dated(found)
    },
  }),
  route<never, OfAgent & { why?: string }>({
    method: 'DELETE', path: `${one}/versions/:version`, summary: 'Deletes a version of a prompt block that runs do not get',
    response: 'json', responseSchema: responses.deletedVersions, query: object({ agentId, why }),
    async handle(call) {
      const given = { version: versionIn(call), ...authorOf(call, call.query.why), ...(await ofAgent(call, call.query)) }
      return { deleted: await promptsOf(call).delete(blockIn(call), given) }
    },
  }),
  route<never, Page>({
    method: 'GET', path: `${one}/releases`, summary: 'Who changed what runs get of a prompt block, when, why and to what; newest first',
    response: 'json', responseSchema: responses.promptBlockReleases, read: true, query: object(page),
    async handle(call) {
      const { releases, ...next } = await promptsOf(call).listReleases(blockIn(call), { ...call.query, ...(await asked(call)) })
      return { releases: releases.map(dated), ...next }
    },
  }),
  route<OfAgent & { version: number; expected: number; why?: string }>({
    method: 'POST', path: `${one}/releases`, summary: 'Lets runs that begin from now on have a version of a prompt block',
    response: 'json', responseSchema: responses.promptBlockRelease,
    body: object({ version: number, expected: number, why, agentId }, ['version', 'expected']),
    async handle(call) {
      const { version, expected, why } = call.body
      const given = { version, expected, ...authorOf(call, why), ...(await ofAgent(call, call.body)) }
      return dated(await promptsOf(call).publish(blockIn(call), given))
    },
  }),
  route<OfAgent & { expected: number; to?: number; why?: string }>({
    method: 'POST', path: `${one}/releases/rollback`,
    summary: 'Lets runs have again what they had with an earlier release of a prompt block',
    response: 'json', responseSchema: responses.promptBlockRelease,
    body: object({ expected: number, to: number, why, agentId }, ['expected']),
    async handle(call) {
      const { expected, to, why } = call.body
      const given = { expected, ...omitUndefined({ to }), ...authorOf(call, why), ...(await ofAgent(call, call.body)) }
      return dated(await promptsOf(call).rollBack(blockIn(call), given))
    },
  }),
]

type AnyCall = Pick<Call<unknown, unknown>, 'context' | 'heed' | 'params' | 'principal'>
type Prompts = ReturnType<Call['heed']['getEditor']>['prompts']

function promptsOf({ heed }: Pick<AnyCall, 'heed'>): Prompts {
  return heed.getEditor().prompts
}

function blockIn({ params: { blockId = '' } }: Pick<AnyCall, 'params'>): string {
  return blockId
}

function authorOf({ principal }: Pick<AnyCall, 'principal'>, why: string | undefined): { by: string; why?: string } {
  return { by: principal.id, ...omitUndefined({ why }) }
}

async function ofAgent(call: Pick<AnyCall, 'context'>, { agentId }: OfAgent) {
  return { ...omitUndefined({ agentId }), ...(await asked(call)) }
}

function describedOf({ latest, release, ...rest }: Awaited<ReturnType<Prompts['describe']>>) {
  return { ...rest, latest: dated(latest), release: release && dated(release) }
}

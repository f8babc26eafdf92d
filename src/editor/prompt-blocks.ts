import { checkNames, checkObject, checkWhole, refused } from '../base/arguments.ts'
import type { Clock } from '../base/clock.ts'
import type { RequestContext } from '../run/request-context.ts'
import { authorOf, pageOf } from './arguments.ts'
import { comparePromptBlocks, type PromptBlockDifference } from './compare.ts'
import type { EditAuthor, EditStore, PromptBlock, StoredRelease, StoredVersion, VersionDeletion } from './contract.ts'
import { checkBlockId, checkPromptBlock } from './instructions.ts'
import { unknownVersion } from './machine.ts'

/** Which storage is meant: that of the Heed, or of an agent with a storage of its own. */
export interface BlockRequest {
  agentId?: string
  /** Where the `memory` of the agent is a function of the request. */
  requestContext?: RequestContext
}

/** A prompt block as it was saved. A version never changes. */
export interface PromptBlockVersion extends EditAuthor {
  blockId: string
  /** From 1. */
  version: number
  base: number
  block: PromptBlock
  createdAt: number
  /** Of a version that was deleted. Its block is empty. */
  deleted?: VersionDeletion
}

/** Which version of a prompt block runs get, from a time on. */
export interface PromptBlockRelease extends EditAuthor {
  blockId: string
  /** From 1. */
  release: number
  version: number
  /** Of a rollback: the release whose version it has. */
  restores?: number
  createdAt: number
}

/** What is saved as a draft of a prompt block. */
export interface PromptBlockDraft extends PromptBlock, EditAuthor, BlockRequest {
  /** The latest version that the author has read; 0 where there is none. */
  base: number
}

/** A saved draft of a prompt block. */
export interface SavedPromptBlock extends PromptBlockVersion {
  /** False where the latest version has the same contents: it is returned. */
  created: boolean
}

/** A prompt block, and what runs get of it. */
export interface DescribedPromptBlock {
  id: string
  latest: PromptBlockVersion
  /** Whether the latest version is not the one that runs get. */
  isDraft: boolean
  release: PromptBlockRelease | null
  /** The agents whose runs get it. */
  agents: string[]
}

/** What runs get of a prompt block from now on. */
export interface PromptBlockPublication extends EditAuthor, BlockRequest {
  /** The newest release that the author has read; 0 where there is none. */
  expected: number
  version: number
}

interface Opened {
  store: EditStore
  host: { readonly clock: Clock }
}

const kind = 'block'
const requestNames = ['agentId', 'requestContext'] as const

/**
 * Pieces of instructions that agents share, by their ids: `{ type: 'prompt_block_ref', id }` in the instructions of an agent. They have
 * versions and releases of their own, as agents have. A run gets the published version when it begins, and keeps it.
 */
export class PromptBlocks {
  readonly #open: (request: BlockRequest) => Promise<Opened>

  /** @internal */
  constructor(open: (request: BlockRequest) => Promise<Opened>) {
    this.#open = open
  }

  /** Rejects with `unknown_version` where there is no such block. */
  async describe(id: string, request: BlockRequest = {}): Promise<DescribedPromptBlock> {
    checkNames('describe()', request, requestNames)
    return described((await this.#at(id, request)).store, id)
  }

  /** The blocks by their ids. Up to `limit`, those after `after`; 100 by default. `next` is the `after` of the next page. */
  async list(query: BlockRequest & { after?: string; limit?: number } = {}): Promise<{ blocks: DescribedPromptBlock[]; next?: string }> {
    checkNames('list()', query, [...requestNames, 'after', 'limit'])
    const { after, limit = 100 } = query
    if (after !== undefined) checkBlockId('after', after)
    checkWhole('limit', limit, 1)
    const { store } = await this.#open(query)
    const { ids, more } = await store.listPromptBlocks({ limit, ...(after !== undefined && { after }) })
    const blocks = await Promise.all(ids.map((id) => described(store, id)))
    return { blocks, ...(more && { next: ids.at(-1) as string }) }
  }

  /** Stores a draft: no run gets it before it is published. Rejects with `edit_conflict` if another version was saved since `base`. */
  async save(id: string, draft: PromptBlockDraft): Promise<SavedPromptBlock> {
    checkObject('save()', draft)
    const { base, by, why, agentId, requestContext, ...given } = draft
    checkWhole('base', base)
    const author = authorOf({ by, why })
    const contents = checkPromptBlock(given)
    const { store, host } = await this.#at(id, requestOf({ agentId, requestContext }))
    const saved = await store.saveVersion({ kind, id, base, contents, ...author, now: host.clock.now() })
    return { ...versionOf(saved.version), created: saved.created }
  }

  /** Stores a version of a block as a draft of another one, which must not exist. */
  async clone(id: string, clone: { as: string; version?: number } & EditAuthor & BlockRequest): Promise<SavedPromptBlock> {
    checkNames('clone()', clone, ['as', 'version', 'by', 'why', ...requestNames])
    const { as, version, by, why, ...request } = clone
    checkBlockId('as', as)
    const { latest } = await this.describe(id, request)
    const found = version === undefined ? latest : await this.getVersion(id, version, request)
    if (!found) throw unknownVersion({ kind, id }, version ?? 0)
    return this.save(as, { ...found.block, base: 0, by, ...(why !== undefined && { why }), ...request })
  }

  /** Lets runs that begin from now on have a version; runs that have begun keep theirs. Rejects with `edit_conflict` as `save()` does. */
  async publish(id: string, release: PromptBlockPublication): Promise<PromptBlockRelease> {
    checkNames('publish()', release, ['expected', 'version', 'by', 'why', ...requestNames])
    const { expected, version } = release
    checkWhole('expected', expected)
    checkWhole('version', version, 1)
    const author = authorOf(release)
    const { store, host } = await this.#at(id, release)
    return releaseOf(await store.publishVersion({ kind, id, expected, version, ...author, now: host.clock.now() }))
  }

  /** Lets runs have again what they had with the release before, or with release `to`. */
  async rollBack(id: string, rollback: { expected: number; to?: number } & EditAuthor & BlockRequest): Promise<PromptBlockRelease> {
    checkNames('rollBack()', rollback, ['expected', 'to', 'by', 'why', ...requestNames])
    const { expected, to } = rollback
    checkWhole('expected', expected)
    if (to !== undefined) checkWhole('to', to, 1)
    const author = authorOf(rollback)
    const { store, host } = await this.#at(id, rollback)
    const asked = { kind, id, expected, ...(to !== undefined && { to }), ...author, now: host.clock.now() } as const
    return releaseOf(await store.rollBackVersion(asked))
  }

  /** A version; null where there is none with this number. */
  async getVersion(id: string, version: number, request: BlockRequest = {}): Promise<PromptBlockVersion | null> {
    checkWhole('version', version, 1)
    checkNames('getVersion()', request, requestNames)
    const found = await (await this.#at(id, request)).store.getVersion({ kind, id }, version)
    return found && versionOf(found)
  }

  /** The newest first. Up to `limit`; 100 by default. `deleted`: those that were deleted, with who did it, in place of the others. */
  async listVersions(
    id: string, query: BlockRequest & { before?: number; limit?: number; deleted?: boolean } = {},
  ): Promise<{ versions: PromptBlockVersion[]; next?: number }> {
    checkNames('listVersions()', query, ['before', 'limit', 'deleted', ...requestNames])
    const { deleted = false } = query
    if (typeof deleted !== 'boolean') throw refused('deleted', 'true or false')
    const page = pageOf(query)
    const { versions, more } = await (await this.#at(id, query)).store.listVersions({ kind, id, deleted, ...page })
    return { versions: versions.map(versionOf), ...(more && { next: versions.at(-1)?.version as number }) }
  }

  /** Who changed what runs get, when, why, and to what; the newest first. Up to `limit`; 100 by default. */
  async listReleases(
    id: string, query: BlockRequest & { before?: number; limit?: number } = {},
  ): Promise<{ releases: PromptBlockRelease[]; next?: number }> {
    checkNames('listReleases()', query, ['before', 'limit', ...requestNames])
    const page = pageOf(query)
    const { releases, more } = await (await this.#at(id, query)).store.listReleases({ kind, id, ...page })
    return { releases: releases.map(releaseOf), ...(more && { next: releases.at(-1)?.release as number }) }
  }

  /** What differs between two versions, field by field. */
  async compare(id: string, versions: { from: number; to: number } & BlockRequest): Promise<PromptBlockDifference[]> {
    checkNames('compare()', versions, ['from', 'to', ...requestNames])
    const { from, to } = versions
    const { store } = await this.#at(id, versions)
    const [one, other] = await Promise.all([from, to].map(async (version) => {
      checkWhole('version', version, 1)
      const found = await store.getVersion({ kind, id }, version)
      if (!found) throw unknownVersion({ kind, id }, version)
      return found.contents as PromptBlock
    }))
    return comparePromptBlocks(one as PromptBlock, other as PromptBlock)
  }

  /**
   * Deletes a version, or the whole block. Returns the numbers, which are not used again. Rejects with `edit_in_use` where runs get it,
   * where an agent refers to it, or where a run that is not finished has it.
   */
  async delete(id: string, deletion: { version?: number } & EditAuthor & BlockRequest): Promise<number[]> {
    checkNames('delete()', deletion, ['version', 'by', 'why', ...requestNames])
    const { version } = deletion
    if (version !== undefined) checkWhole('version', version, 1)
    const author = authorOf(deletion)
    const { store, host } = await this.#at(id, deletion)
    const deleted = await store.deleteVersions({ kind, id, ...(version !== undefined && { version }), ...author, now: host.clock.now() })
    if (deleted.length === 0) throw unknownVersion({ kind, id }, 1)
    return deleted
  }

  #at(id: string, request: BlockRequest): Promise<Opened> {
    checkBlockId('id', id)
    return this.#open(request)
  }
}

async function described(store: EditStore, id: string): Promise<DescribedPromptBlock> {
  const [{ versions: [latest] }, { releases: [newest] }, agents] = await Promise.all([
    store.listVersions({ kind, id, limit: 1 }), store.listReleases({ kind, id, limit: 1 }), store.listBlockUsers(id),
  ])
  if (!latest) throw unknownVersion({ kind, id }, 1)
  return {
    id, latest: versionOf(latest), isDraft: newest?.version !== latest.version, release: newest ? releaseOf(newest) : null, agents,
  }
}

function requestOf({ agentId, requestContext }: { agentId: string | undefined; requestContext: RequestContext | undefined }): BlockRequest {
  return { ...(agentId !== undefined && { agentId }), ...(requestContext && { requestContext }) }
}

function versionOf({ kind: _, id, contents, ...rest }: StoredVersion): PromptBlockVersion {
  return { blockId: id, ...rest, block: contents as PromptBlock }
}

function releaseOf({ kind: _, id, rules: __, ...rest }: StoredRelease): PromptBlockRelease {
  return { blockId: id, ...rest }
}

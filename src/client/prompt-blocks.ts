import { checkNames, checkWhole } from '../base/arguments.ts'
import type { PromptBlockDifference } from '../editor/compare.ts'
import type { PromptBlock } from '../editor/contract.ts'
import type {
  DescribedPromptBlock, PromptBlockRelease, PromptBlockVersion, SavedPromptBlock,
} from '../editor/prompt-blocks.ts'
import type { Connection } from './connection.ts'
import type { EditPage, Sent } from './editor.ts'

/** A prompt block as a server sends it. */
export type RemotePromptBlock = Omit<DescribedPromptBlock, 'latest' | 'release'> & {
  latest: Sent<PromptBlockVersion>
  release: Sent<PromptBlockRelease> | null
}

/**
 * Prompt blocks: pieces of instructions that agents share. The calls need the scope `edit`; the author of what is stored is the
 * principal of the client. `agentId` is for an agent with a storage of its own.
 */
export class PromptBlocksClient {
  readonly #connection: Connection
  readonly #query: { agentId?: string }

  /** @internal */
  constructor(connection: Connection, query: { agentId?: string }) {
    this.#connection = connection
    this.#query = query
  }

  /** By their ids. `after`: the `next` of the page before. */
  async list(page: { after?: string; limit?: number } = {}): Promise<{ blocks: RemotePromptBlock[]; next?: string }> {
    checkNames('list()', page, ['after', 'limit'])
    return this.#connection.json('/prompt-blocks', { query: { ...page, ...this.#query } })
  }

  /** Its latest version, what runs get, and the agents that refer to it. Rejects with `unknown_version` where there is none. */
  describe(id: string): Promise<RemotePromptBlock> {
    return this.#connection.json(pathOf(id), { query: { ...this.#query } })
  }

  /** Stores a draft on top of `base`, the latest version that was read. Rejects with `edit_conflict` if there is a later one. */
  async save(id: string, draft: PromptBlock & { base: number; why?: string }): Promise<Sent<SavedPromptBlock>> {
    checkNames('save()', draft, ['base', 'content', 'rules', 'description', 'why'])
    return this.#connection.json(`${pathOf(id)}/versions`, { body: { ...draft, ...this.#query } })
  }

  /** Stores a version as a draft of another block, which must not exist. */
  async clone(id: string, clone: { as: string; version?: number; why?: string }): Promise<Sent<SavedPromptBlock>> {
    checkNames('clone()', clone, ['as', 'version', 'why'])
    return this.#connection.json(`${pathOf(id)}/clone`, { body: { ...clone, ...this.#query } })
  }

  /** Lets runs that begin from now on have a version. `expected` is the newest release that was read. */
  async publish(id: string, release: { version: number; expected: number; why?: string }): Promise<Sent<PromptBlockRelease>> {
    checkNames('publish()', release, ['version', 'expected', 'why'])
    return this.#connection.json(`${pathOf(id)}/releases`, { body: { ...release, ...this.#query } })
  }

  /** Lets runs have again what they had with the release before, or with release `to`. */
  async rollBack(id: string, rollback: { expected: number; to?: number; why?: string }): Promise<Sent<PromptBlockRelease>> {
    checkNames('rollBack()', rollback, ['expected', 'to', 'why'])
    return this.#connection.json(`${pathOf(id)}/releases/rollback`, { body: { ...rollback, ...this.#query } })
  }

  /** Rejects with `unknown_version` where there is none. */
  async getVersion(id: string, version: number): Promise<Sent<PromptBlockVersion>> {
    checkWhole('version', version, 1)
    return this.#connection.json(`${pathOf(id)}/versions/${version}`, { query: { ...this.#query } })
  }

  /** `deleted`: those that were deleted, with who did it, in place of the others. */
  async listVersions(
    id: string, page: EditPage & { deleted?: boolean } = {},
  ): Promise<{ versions: Array<Sent<PromptBlockVersion>>; next?: number }> {
    checkNames('listVersions()', page, ['before', 'limit', 'deleted'])
    return this.#connection.json(`${pathOf(id)}/versions`, { query: { ...page, ...this.#query } })
  }

  async listReleases(id: string, page: EditPage = {}): Promise<{ releases: Array<Sent<PromptBlockRelease>>; next?: number }> {
    checkNames('listReleases()', page, ['before', 'limit'])
    return this.#connection.json(`${pathOf(id)}/releases`, { query: { ...page, ...this.#query } })
  }

  /** What differs between two versions, field by field. */
  async compare(id: string, versions: { from: number; to: number }): Promise<PromptBlockDifference[]> {
    checkNames('compare()', versions, ['from', 'to'])
    const query = { ...versions, ...this.#query }
    return (await this.#connection.json<{ differences: PromptBlockDifference[] }>(`${pathOf(id)}/versions/compare`, { query })).differences
  }

  /** Deletes a version, or the whole block. Rejects with `edit_in_use` where runs get it, or an agent refers to it. */
  async delete(id: string, deletion: { version?: number; why?: string } = {}): Promise<number[]> {
    checkNames('delete()', deletion, ['version', 'why'])
    const { version, ...why } = deletion
    const path = version === undefined ? pathOf(id) : `${pathOf(id)}/versions/${version}`
    return (await this.#connection.json<{ deleted: number[] }>(path, { method: 'DELETE', query: { ...why, ...this.#query } })).deleted
  }
}

function pathOf(id: string): string {
  return `/prompt-blocks/${encodeURIComponent(id)}`
}

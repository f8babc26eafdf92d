import { checkNames, checkWhole } from '../base/arguments.ts'
import type { EditDifference } from '../editor/compare.ts'
import type { AgentOverrides, AgentVersion, Release, ReleaseRule, TriedVersion } from '../editor/contract.ts'
import type { EditableAgent, EditedAgentSummary, PreviewedInstructions, SavedVersion } from '../editor/editor.ts'
import type { Connection } from './connection.ts'

/** A version or release as a server sends it. */
export type Sent<Row> = Omit<Row, 'createdAt'> & { createdAt: string }

/** What may be edited of an agent, and what is, as a server sends it. */
export type RemoteEditableAgent = Omit<EditableAgent, 'latest' | 'release'> & {
  latest: Sent<AgentVersion> | null
  release: Sent<Release> | null
}

/** What an agent has, for lists, as a server sends it. */
export type RemoteEditedAgent = Omit<EditedAgentSummary, 'release'> & { release: Sent<Release> | null }

/** A page of the newest first. `before`: the `next` of the page before. */
export interface EditPage {
  before?: number
  limit?: number
}

/** The versions of an agent. The calls need the scope `edit`; the author of what is stored is the principal of the client. */
export class EditorClient {
  readonly #connection: Connection
  readonly #path: string

  /** @internal */
  constructor(connection: Connection, path: string) {
    this.#connection = connection
    this.#path = path
  }

  /** What may be edited, what code says, the latest version and the newest release. */
  describe(): Promise<RemoteEditableAgent> {
    return this.#connection.json(`${this.#path}/editor`)
  }

  /** Stores a draft on top of `base`, the latest version that was read. Rejects with `edit_conflict` if there is a later one. */
  async save(draft: AgentOverrides & { base: number; why?: string }): Promise<Sent<SavedVersion>> {
    const { base, why, ...overrides } = draft
    return this.#connection.json(`${this.#path}/versions`, { body: { base, overrides, ...(why !== undefined && { why }) } })
  }

  /** Lets runs that begin from now on have a version. `expected` is the newest release that was read. */
  async publish(release: { version: number; expected: number; rules?: readonly ReleaseRule[]; why?: string }): Promise<Sent<Release>> {
    checkNames('publish()', release, ['version', 'expected', 'rules', 'why'])
    return this.#connection.json(`${this.#path}/releases`, { body: release })
  }

  /** Lets runs have again what they had with the release before, or with release `to`. */
  async rollBack(rollback: { expected: number; to?: number; why?: string }): Promise<Sent<Release>> {
    checkNames('rollBack()', rollback, ['expected', 'to', 'why'])
    return this.#connection.json(`${this.#path}/releases/rollback`, { body: rollback })
  }

  /** Rejects with `unknown_version` where there is none. */
  async getVersion(version: number): Promise<Sent<AgentVersion>> {
    checkWhole('version', version, 1)
    return this.#connection.json(`${this.#path}/versions/${version}`)
  }

  /** `deleted`: those that were deleted, with who did it, in place of the others. */
  async listVersions(page: EditPage & { deleted?: boolean } = {}): Promise<{ versions: Array<Sent<AgentVersion>>; next?: number }> {
    checkNames('listVersions()', page, ['before', 'limit', 'deleted'])
    return this.#connection.json(`${this.#path}/versions`, { query: { ...page } })
  }

  async listReleases(page: EditPage = {}): Promise<{ releases: Array<Sent<Release>>; next?: number }> {
    checkNames('listReleases()', page, ['before', 'limit'])
    return this.#connection.json(`${this.#path}/releases`, { query: { ...page } })
  }

  /** What differs between two versions, field by field; 0 is code without overrides. */
  async compare(versions: { from: number; to: number }): Promise<EditDifference[]> {
    checkNames('compare()', versions, ['from', 'to'])
    const path = `${this.#path}/versions/compare`
    return (await this.#connection.json<{ differences: EditDifference[] }>(path, { query: { ...versions } })).differences
  }

  /** Deletes a version. Rejects with `edit_in_use` where runs get it, or a run that is not finished has it. */
  async delete(version: number, options: { why?: string } = {}): Promise<number[]> {
    checkWhole('version', version, 1)
    checkNames('delete()', options, ['why'])
    const path = `${this.#path}/versions/${version}`
    return (await this.#connection.json<{ deleted: number[] }>(path, { method: 'DELETE', query: { ...options } })).deleted
  }

  /** The instructions that a run with a request context would have: those that are passed, else those of a version. */
  async preview(
    preview: {
      instructions?: AgentOverrides['instructions']
      version?: TriedVersion
      drafts?: boolean
      requestContext?: Record<string, unknown>
    } = {},
  ): Promise<PreviewedInstructions> {
    checkNames('preview()', preview, ['instructions', 'version', 'drafts', 'requestContext'])
    return this.#connection.json(`${this.#path}/versions/preview`, { body: preview })
  }
}

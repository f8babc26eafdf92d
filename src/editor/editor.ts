import { checkName, checkNames, checkObject, checkWhole, refused } from '../base/arguments.ts'
import type { Clock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import { RecentMap } from '../base/recent-map.ts'
import type { RequestContext } from '../run/request-context.ts'
import { authorOf, checkReleaseRules, checkTried, pageOf } from './arguments.ts'
import { compareOverrides, type EditDifference } from './compare.ts'
import { fitsContext } from './context-rules.ts'
import type {
  AgentOverrides, AgentVersion, Editable, EditAuthor, EditStore, EditSubject, PlainToolOverride, PromptBlock, Release,
  ReleaseRule, ResolvedOverrides, RunEditor, RunForEditor, StoredRelease, StoredVersion, ToolOverride, TriedVersion,
} from './contract.ts'
import { checkInstructions, renderInstructions, type RenderedBlock } from './instructions.ts'
import { blocksIn, storablePart, unknownVersion } from './machine.ts'
import { checkOverrides, locked } from './overrides.ts'
import { PromptBlocks } from './prompt-blocks.ts'

/** An agent as the editor knows it. */
export interface EditedAgent {
  readonly id: string
  readonly name: string
  readonly editable: Editable
  readonly signalTags: readonly string[]
  describe(request: { requestContext?: RequestContext }): Promise<{ tools: Array<{ id: string; description?: string }> }>
  getInstructions(request: { requestContext?: RequestContext }): Promise<string[]>
  /** The keys that it declares in `requestContextSchema`. */
  contextKeys(): Promise<readonly string[]>
  resolveStorage(requestContext?: RequestContext): EditedSite | Promise<EditedSite>
}

interface EditedSite {
  threads(): EditedThreads
}

interface EditedThreads {
  open(): Promise<unknown>
  readonly store: EditStore
}

/** The Heed of an editor. */
export interface EditorHost {
  readonly clock: Clock
  getAgentById(id: string): EditedAgent
  listAgents(): Readonly<Record<string, EditedAgent>>
  /** The storage of the Heed. */
  readonly sites: { of(): { readonly threads: EditedThreads } }
}

/** Whose agent is meant where its `memory` is a function of the request: each storage has its own versions. */
export interface EditRequest {
  requestContext?: RequestContext
}

/** What is saved as a draft. Without a field, the version has it as in code. */
export interface DraftInput extends AgentOverrides, EditAuthor, EditRequest {
  /** The latest version that the author has read; 0 where there is none. */
  base: number
}

/** What runs get from now on. */
export interface ReleaseInput extends EditAuthor, EditRequest {
  /** The newest release that the author has read; 0 where there is none. */
  expected: number
  /** For runs that no rule fits. 0: code without overrides. */
  version: number
  rules?: readonly ReleaseRule[]
}

/** Which release counts again. */
export interface RollbackInput extends EditAuthor, EditRequest {
  expected: number
  /** The number of the release; 0: the time before the first. Defaults to the one before. */
  to?: number
}

/** A saved draft. */
export interface SavedVersion extends AgentVersion {
  /** False where the latest version has the same contents: it is returned. */
  created: boolean
  /** Fields that code owns, and that were left out. */
  stripped: string[]
}

/** What may be edited of an agent, and what is. */
export interface EditableAgent {
  id: string
  name: string
  editable: Editable
  /** Without overrides. */
  code: { instructions: string[]; tools: Array<{ name: string; description: string }> }
  /** The latest version, published or not. */
  latest: AgentVersion | null
  /** Whether the latest version is one that the newest release does not name. */
  isDraft: boolean
  /** What runs get now. */
  release: Release | null
}

/** A page of versions or releases. `next` is the `before` of the next page. */
export interface EditPageQuery extends EditRequest {
  before?: number
  limit?: number
}

/** What an agent has, for lists. */
export interface EditedAgentSummary {
  id: string
  name: string
  editable: Editable
  /** The number of its latest version; 0 where it has none. */
  latest: number
  /** Whether the latest version is one that the newest release does not name. */
  isDraft: boolean
  release: Release | null
}

/** Which versions are deleted, by whom and why. */
export interface DeletionInput extends EditAuthor, EditRequest {
  /** Without it, all of them. */
  version?: number
}

/** What is shown of instructions: those that are passed, else those of a version. */
export interface PreviewInput extends EditRequest {
  instructions?: AgentOverrides['instructions']
  /** `draft`: the latest. Defaults to what a run gets now. */
  version?: TriedVersion
  /** Reads the latest versions of prompt blocks, published or not. */
  drafts?: boolean
}

/** The instructions that a run with a request context would have. */
export interface PreviewedInstructions {
  text: string
  /** Where the instructions are as in code. */
  isCode: boolean
  /** What became of each block; empty where the instructions are one text. */
  blocks: RenderedBlock[]
  /** Places of templates that have no value and no default: they stay as they are written. */
  unset: string[]
}

/** How many versions a process keeps of a store. They never change. */
const keptVersions = 256
const keptReports = 1_000

/** Edits the agents of a Heed: `new Heed({ editor: new HeedEditor() })`. Their versions are in the storage of their threads. */
export class HeedEditor implements RunEditor {
  #host: EditorHost | undefined
  readonly #versions = new WeakMap<EditStore, RecentMap<StoredVersion>>()
  /** What was reported about versions. */
  readonly #reported = new WeakMap<EditStore, RecentMap<true>>()
  /** Pieces of instructions that agents share. */
  readonly prompts = new PromptBlocks((request) => this.#openShared(request))

  constructor(options: Record<string, never> = {}) {
    checkNames('new HeedEditor()', options, [])
  }

  /** Called by the Heed that it is passed to. */
  join(host: EditorHost): void {
    if (this.#host) throw new HeedError('invalid_argument', 'This editor belongs to another Heed. Create one for each: new HeedEditor().')
    this.#host = host
  }

  /** What may be edited of an agent, what its code says, and what its runs get now. */
  async describe(agentId: string, request: EditRequest = {}): Promise<EditableAgent> {
    checkNames('describe()', request, ['requestContext'])
    const { agent, store } = await this.#open(agentId, request)
    const { tools } = await agent.describe(asked(request))
    const [{ versions: [latest] }, { releases: [release] }] = await Promise.all([
      store.listVersions({ kind, id: agentId, limit: 1 }), store.listReleases({ kind, id: agentId, limit: 1 }),
    ])
    return {
      id: agent.id,
      name: agent.name,
      editable: agent.editable,
      code: {
        instructions: await agent.getInstructions(asked(request)),
        tools: tools.map(({ id, description = '' }) => ({ name: id, description })),
      },
      latest: latest ? agentVersion(latest) : null,
      isDraft: isDraft(latest, release),
      release: release ? releaseOf(release) : null,
    }
  }

  /** The agents that may be edited, and what their runs get. */
  async list(request: EditRequest = {}): Promise<EditedAgentSummary[]> {
    checkNames('list()', request, ['requestContext'])
    const agents = Object.values(this.#hostOf().listAgents()).filter(({ editable }) => editable.instructions || editable.tools !== false)
    return Promise.all(agents.map(async ({ id, name, editable }) => {
      const { store } = await this.#open(id, request)
      const [{ versions: [latest] }, { releases: [release] }] = await Promise.all([
        store.listVersions({ kind, id, limit: 1 }), store.listReleases({ kind, id, limit: 1 }),
      ])
      return {
        id, name, editable, latest: latest?.version ?? 0, isDraft: isDraft(latest, release), release: release ? releaseOf(release) : null,
      }
    }))
  }

  /**
   * Stores a draft: no run gets it before it is published. Rejects with `edit_conflict` if another version was saved since `base`, and by
   * name what may not stand in a version. Fields that code owns are left out, and named in `stripped`.
   */
  async save(agentId: string, draft: DraftInput): Promise<SavedVersion> {
    checkObject('save()', draft)
    const { base, by, why, requestContext, ...overrides } = draft
    checkWhole('base', base)
    const author = authorOf({ by, why })
    const { agent, store, host } = await this.#open(agentId, { requestContext })
    const { tools } = await agent.describe(asked({ requestContext }))
    const offered = new Map(tools.map(({ id, description }) => [id, description !== undefined]))
    const code = { agentId, editable: agent.editable, tools: offered, tags: agent.signalTags, keys: await agent.contextKeys() }
    const checked = checkOverrides(overrides, code)
    await this.#checkBlocks(store, checked.overrides)
    const saved = await store.saveVersion({ kind, id: agentId, base, contents: checked.overrides, ...author, now: host.clock.now() })
    return { ...agentVersion(saved.version), created: saved.created, stripped: checked.stripped }
  }

  /** Lets runs that begin from now on have a version; runs that have begun keep theirs. Rejects with `edit_conflict` as `save()` does. */
  async publish(agentId: string, release: ReleaseInput): Promise<Release> {
    checkNames('publish()', release, ['expected', 'version', 'rules', 'by', 'why', 'requestContext'])
    const { expected, version, rules, requestContext } = release
    checkWhole('expected', expected)
    checkWhole('version', version)
    if (rules !== undefined) checkReleaseRules(rules)
    const author = authorOf(release)
    const { store, host } = await this.#open(agentId, { requestContext })
    const asked = { kind, id: agentId, expected, version, ...(rules && { rules }), ...author, now: host.clock.now() } as const
    return releaseOf(await store.publishVersion(asked))
  }

  /** Lets runs have again what they had with an earlier release. */
  async rollBack(agentId: string, rollback: RollbackInput): Promise<Release> {
    checkNames('rollBack()', rollback, ['expected', 'to', 'by', 'why', 'requestContext'])
    const { expected, to, requestContext } = rollback
    checkWhole('expected', expected)
    if (to !== undefined) checkWhole('to', to)
    const author = authorOf(rollback)
    const { store, host } = await this.#open(agentId, { requestContext })
    const asked = { kind, id: agentId, expected, ...(to !== undefined && { to }), ...author, now: host.clock.now() } as const
    return releaseOf(await store.rollBackVersion(asked))
  }

  /** A version; null where there is none with this number. */
  async getVersion(agentId: string, version: number, request: EditRequest = {}): Promise<AgentVersion | null> {
    checkWhole('version', version, 1)
    checkNames('getVersion()', request, ['requestContext'])
    const { store } = await this.#open(agentId, request)
    const found = await store.getVersion({ kind, id: agentId }, version)
    return found && agentVersion(found)
  }

  /** The newest first. Up to `limit`; 100 by default. `deleted`: those that were deleted, with who did it, in place of the others. */
  async listVersions(
    agentId: string, query: EditPageQuery & { deleted?: boolean } = {},
  ): Promise<{ versions: AgentVersion[]; next?: number }> {
    checkNames('listVersions()', query, ['before', 'limit', 'deleted', 'requestContext'])
    const { deleted = false } = query
    if (typeof deleted !== 'boolean') throw refused('deleted', 'true or false')
    const page = pageOf(query)
    const { store } = await this.#open(agentId, query)
    const { versions, more } = await store.listVersions({ kind, id: agentId, deleted, ...page })
    return { versions: versions.map(agentVersion), ...(more && { next: versions.at(-1)?.version as number }) }
  }

  /** Who changed what runs get, when, why, and to what; the newest first. Up to `limit`; 100 by default. */
  async listReleases(agentId: string, query: EditPageQuery = {}): Promise<{ releases: Release[]; next?: number }> {
    checkNames('listReleases()', query, ['before', 'limit', 'requestContext'])
    const page = pageOf(query)
    const { store } = await this.#open(agentId, query)
    const { releases, more } = await store.listReleases({ kind, id: agentId, ...page })
    return { releases: releases.map(releaseOf), ...(more && { next: releases.at(-1)?.release as number }) }
  }

  /**
   * Deletes a version, or all versions of an agent. Returns their numbers, which are not used again. Rejects with `edit_in_use` where runs
   * get one of them, or a run that is not finished has it.
   */
  async delete(agentId: string, deletion: DeletionInput): Promise<number[]> {
    checkNames('delete()', deletion, ['version', 'by', 'why', 'requestContext'])
    const { version } = deletion
    if (version !== undefined) checkWhole('version', version, 1)
    const author = authorOf(deletion)
    const { store, host } = await this.#open(agentId, deletion)
    return store.deleteVersions({ kind, id: agentId, ...(version !== undefined && { version }), ...author, now: host.clock.now() })
  }

  /** The instructions that a run with a request context would have: to try texts, rules and templates before they are saved. */
  async preview(agentId: string, preview: PreviewInput): Promise<PreviewedInstructions> {
    checkNames('preview()', preview, ['instructions', 'version', 'drafts', 'requestContext'])
    const { instructions, version, drafts = version === 'draft', requestContext } = preview
    if (version !== undefined) checkTried('version', version)
    if (instructions !== undefined && version !== undefined) throw refused('version', 'left out where instructions are passed')
    const { agent, store } = await this.#open(agentId, { requestContext })
    const [keys, tags, context] = [await agent.contextKeys(), agent.signalTags, storablePart(requestContext?.entries())]
    let given = instructions
    if (given !== undefined) given = checkInstructions(given, { keys, tags })
    else {
      const edit = await store.editOfRun({ agentId, context }, version)
      given = edit && edit.version > 0 ? (await this.#overridesOf(store, agentId, edit.version, false)).instructions : undefined
    }
    const read = (id: string) => this.#readBlock(store, id, undefined, drafts)
    const found = await renderInstructions(given, { context, keys, tags, read })
    const text = found.text ?? (await agent.getInstructions(asked({ requestContext }))).join('\n\n')
    return { ...found, text, isCode: found.text === undefined }
  }

  /** What differs between two versions, field by field. Version 0 is code without overrides. */
  async compare(agentId: string, versions: { from: number; to: number } & EditRequest): Promise<EditDifference[]> {
    checkNames('compare()', versions, ['from', 'to', 'requestContext'])
    const { from, to, requestContext } = versions
    checkWhole('from', from)
    checkWhole('to', to)
    const { store } = await this.#open(agentId, { requestContext })
    const [one, other] = await Promise.all([from, to].map((version) => this.#overridesOf(store, agentId, version)))
    return compareOverrides(one ?? {}, other ?? {})
  }

  /** Called by a run that begins, or goes on. */
  async overridesFor(store: EditStore, { agentId, edit, context, keys, tags }: RunForEditor): Promise<ResolvedOverrides> {
    // What was tried may be deleted; what was released is not, while a run has it.
    const isReleased = edit.release !== undefined
    const { instructions, tools = {} } = await this.#overridesOf(store, agentId, edit.version, isReleased)
    const plain = Object.entries(tools).flatMap(([name, override]): Array<[string, PlainToolOverride]> => {
      const found = overrideFor(override, context)
      return found === undefined ? [] : [[name, found]]
    })
    const { blocks: pinned = {} } = edit
    const read = (id: string) => this.#readBlock(store, id, Object.hasOwn(pinned, id) ? pinned[id] : 0, false, isReleased)
    const found = await renderInstructions(instructions, { context, keys, tags, read })
    return {
      ...(found.text !== undefined && { instructions: found.text }), ...(plain.length > 0 && { tools: Object.fromEntries(plain) }),
      unset: found.unset,
    }
  }

  /** Called by a run that warns about its version: true from the second call on. */
  isReported(store: EditStore, about: string): boolean {
    let reported = this.#reported.get(store)
    if (!reported) this.#reported.set(store, reported = new RecentMap(keptReports))
    const isKnown = reported.get(about) === true
    reported.set(about, true)
    return isKnown
  }

  async #overridesOf(store: EditStore, agentId: string, version: number, keep = true): Promise<AgentOverrides> {
    return version === 0 ? {} : ((await this.#read(store, { kind, id: agentId }, version, keep)).contents as AgentOverrides)
  }

  /** A prompt block: the version that a run has, else the one that runs get. 0: a run has none. */
  async #readBlock(store: EditStore, id: string, version: number | undefined, draft: boolean, keep = false) {
    const subject = { kind: 'block', id } as const
    const [number = 0, found] = version === undefined ? await blockNow(store, subject, draft) : [version]
    if (number === 0) throw unknownVersion(subject, 0)
    const stored = found ?? (await this.#read(store, subject, number, keep))
    return { version: number, block: stored.contents as PromptBlock }
  }

  /** A version, kept in memory where `keep`. */
  async #read(store: EditStore, subject: EditSubject, version: number, keep: boolean): Promise<StoredVersion> {
    let kept = this.#versions.get(store)
    if (!kept) this.#versions.set(store, kept = new RecentMap(keptVersions))
    const key = `${subject.kind} ${version} ${subject.id}`
    const found = (keep ? kept.get(key) : undefined) ?? (await store.getVersion(subject, version))
    if (!found) throw unknownVersion(subject, version)
    if (keep) kept.set(key, found)
    return found
  }

  /** Rejects references to prompt blocks that do not exist: they are saved first. */
  async #checkBlocks(store: EditStore, overrides: AgentOverrides): Promise<void> {
    await Promise.all(blocksIn(overrides).map(async (id) => {
      const { versions } = await store.listVersions({ kind: 'block', id, limit: 1 })
      if (versions.length === 0)
        throw new HeedError('unknown_version', `There is no prompt block '${id}'. Save it first.`, { details: { blockId: id } })
    }))
  }

  #hostOf(): EditorHost {
    if (this.#host) return this.#host
    throw new HeedError('invalid_argument', 'This editor belongs to no Heed. Pass it: new Heed({ editor }).')
  }

  async #open(agentId: string, { requestContext }: { requestContext?: RequestContext | undefined }) {
    checkName('agentId', agentId)
    const host = this.#hostOf()
    const agent = host.getAgentById(agentId)
    if (!agent.editable.instructions && agent.editable.tools === false) throw locked(agentId, [])
    const threads = (await agent.resolveStorage(requestContext)).threads()
    await threads.open()
    return { agent, store: threads.store, host }
  }

  /** The storage of prompt blocks: that of an agent, else of the Heed. */
  async #openShared({ agentId, requestContext }: { agentId?: string | undefined; requestContext?: RequestContext | undefined }) {
    const host = this.#hostOf()
    if (agentId !== undefined) return this.#open(agentId, { requestContext })
    const { threads } = host.sites.of()
    await threads.open()
    return { store: threads.store, host }
  }
}

const kind = 'agent'

async function blockNow(store: EditStore, { id }: EditSubject, draft: boolean): Promise<[number | undefined, StoredVersion | undefined]> {
  const { versions: [latest] } = await store.listVersions({ kind: 'block', id, limit: 1 })
  if (draft || !latest) return [latest?.version, latest]
  const { releases: [newest] } = await store.listReleases({ kind: 'block', id, limit: 1 })
  return [newest?.version, undefined]
}

/** The override of a tool for a request; undefined where no rules fit it. */
function overrideFor(override: ToolOverride, context: JSONObject): PlainToolOverride | undefined {
  if (override === false || 'description' in override) return override
  return override.find(({ rules }) => fitsContext(rules, context))?.override
}

function isDraft(latest: StoredVersion | undefined, release: StoredRelease | undefined): boolean {
  const named = [release?.version, ...(release?.rules ?? []).map(({ version }) => version)]
  return latest !== undefined && !named.includes(latest.version)
}

function agentVersion({ kind: _, id, contents, ...rest }: StoredVersion): AgentVersion {
  return { agentId: id, ...rest, overrides: contents as AgentOverrides }
}

function releaseOf({ kind: _, id, ...rest }: StoredRelease): Release {
  return { agentId: id, ...rest }
}

function asked({ requestContext }: { requestContext?: RequestContext | undefined }): EditRequest {
  return requestContext ? { requestContext } : {}
}

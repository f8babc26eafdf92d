import { checkName, checkNames, checkObject, checkText, checkWhole, refused } from '../base/arguments.ts'
import type { Clock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'
import { isName, isObject } from '../base/json.ts'
import { RecentMap } from '../base/recent-map.ts'
import type { RequestContext } from '../run/request-context.ts'
import { compareOverrides, type EditDifference } from './compare.ts'
import type {
  AgentOverrides, AgentVersion, Editable, EditAuthor, EditStore, Release, ReleaseRule, RunEditor,
} from './contract.ts'
import { checkOverrides, locked } from './overrides.ts'

/** An agent as the editor knows it. */
export interface EditedAgent {
  readonly id: string
  readonly name: string
  readonly editable: Editable
  readonly signalTags: readonly string[]
  describe(request: { requestContext?: RequestContext }): Promise<{ tools: Array<{ id: string; description?: string }> }>
  getInstructions(request: { requestContext?: RequestContext }): Promise<string[]>
  resolveStorage(requestContext?: RequestContext): EditedSite | Promise<EditedSite>
}

interface EditedSite {
  threads(): { open(): Promise<unknown>; readonly store: EditStore }
}

/** The Heed of an editor. */
export interface EditorHost {
  readonly clock: Clock
  getAgentById(id: string): EditedAgent
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

const maxRules = 64
const maxValues = 1_000
/** How many versions a process keeps of a store. They never change. */
const keptVersions = 256

/** Edits the agents of a Heed: `new Heed({ editor: new HeedEditor() })`. Their versions are in the storage of their threads. */
export class HeedEditor implements RunEditor {
  #host: EditorHost | undefined
  readonly #versions = new WeakMap<EditStore, RecentMap<AgentVersion>>()
  /** Versions whose overrides of missing tools were reported. */
  readonly #reported = new WeakSet<AgentOverrides>()

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
      store.listAgentVersions({ agentId, limit: 1 }), store.listReleases({ agentId, limit: 1 }),
    ])
    const named = [release?.version, ...(release?.rules ?? []).map(({ version }) => version)]
    return {
      id: agent.id,
      name: agent.name,
      editable: agent.editable,
      code: {
        instructions: await agent.getInstructions(asked(request)),
        tools: tools.map(({ id, description = '' }) => ({ name: id, description })),
      },
      latest: latest ?? null,
      isDraft: latest !== undefined && !named.includes(latest.version),
      release: release ?? null,
    }
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
    const checked = checkOverrides(overrides, { agentId, editable: agent.editable, tools: offered, tags: agent.signalTags })
    const saved = await store.saveAgentVersion({ agentId, base, overrides: checked.overrides, ...author, now: host.clock.now() })
    return { ...saved.version, created: saved.created, stripped: checked.stripped }
  }

  /** Lets runs that begin from now on have a version; runs that have begun keep theirs. Rejects with `edit_conflict` as `save()` does. */
  async publish(agentId: string, release: ReleaseInput): Promise<Release> {
    checkNames('publish()', release, ['expected', 'version', 'rules', 'by', 'why', 'requestContext'])
    const { expected, version, rules, requestContext } = release
    checkWhole('expected', expected)
    checkWhole('version', version)
    if (rules !== undefined) checkRules(rules)
    const author = authorOf(release)
    const { store, host } = await this.#open(agentId, { requestContext })
    return store.publishAgent({ agentId, expected, version, ...(rules && { rules }), ...author, now: host.clock.now() })
  }

  /** Lets runs have again what they had with an earlier release. */
  async rollBack(agentId: string, rollback: RollbackInput): Promise<Release> {
    checkNames('rollBack()', rollback, ['expected', 'to', 'by', 'why', 'requestContext'])
    const { expected, to, requestContext } = rollback
    checkWhole('expected', expected)
    if (to !== undefined) checkWhole('to', to)
    const author = authorOf(rollback)
    const { store, host } = await this.#open(agentId, { requestContext })
    return store.rollBackAgent({ agentId, expected, ...(to !== undefined && { to }), ...author, now: host.clock.now() })
  }

  /** A version; null where there is none with this number. */
  async getVersion(agentId: string, version: number, request: EditRequest = {}): Promise<AgentVersion | null> {
    checkWhole('version', version, 1)
    checkNames('getVersion()', request, ['requestContext'])
    const { store } = await this.#open(agentId, request)
    return store.getAgentVersion(agentId, version)
  }

  /** The newest first. Up to `limit`; 100 by default. */
  async listVersions(agentId: string, query: EditPageQuery = {}): Promise<{ versions: AgentVersion[]; next?: number }> {
    const { store, page } = await this.#page('listVersions()', agentId, query)
    const { versions, more } = await store.listAgentVersions(page)
    return { versions, ...(more && { next: versions.at(-1)?.version as number }) }
  }

  /** Who changed what runs get, when, why, and to what; the newest first. Up to `limit`; 100 by default. */
  async listReleases(agentId: string, query: EditPageQuery = {}): Promise<{ releases: Release[]; next?: number }> {
    const { store, page } = await this.#page('listReleases()', agentId, query)
    const { releases, more } = await store.listReleases(page)
    return { releases, ...(more && { next: releases.at(-1)?.release as number }) }
  }

  /** What differs between two versions, field by field. Version 0 is code without overrides. */
  async compare(agentId: string, versions: { from: number; to: number } & EditRequest): Promise<EditDifference[]> {
    checkNames('compare()', versions, ['from', 'to', 'requestContext'])
    const { from, to, requestContext } = versions
    checkWhole('from', from)
    checkWhole('to', to)
    const { store } = await this.#open(agentId, { requestContext })
    const [one, other] = await Promise.all([from, to].map((version) => this.overridesOf(store, agentId, version)))
    return compareOverrides(one ?? {}, other ?? {})
  }

  /** Called by a run that begins. */
  async overridesOf(store: EditStore, agentId: string, version: number): Promise<AgentOverrides> {
    if (version === 0) return {}
    let kept = this.#versions.get(store)
    if (!kept) this.#versions.set(store, kept = new RecentMap(keptVersions))
    const key = `${version} ${agentId}`
    const found = kept.get(key) ?? (await store.getAgentVersion(agentId, version))
    if (!found) throw new HeedError('unknown_version', `Agent '${agentId}' has no version ${version}.`, { details: { agentId, version } })
    kept.set(key, found)
    return found.overrides
  }

  /** Called by a run that warns about missing tools: true from the second call on. */
  isReported(overrides: AgentOverrides): boolean {
    const reported = this.#reported.has(overrides)
    this.#reported.add(overrides)
    return reported
  }

  async #open(agentId: string, { requestContext }: { requestContext?: RequestContext | undefined }) {
    checkName('agentId', agentId)
    const host = this.#host
    if (!host) throw new HeedError('invalid_argument', 'This editor belongs to no Heed. Pass it: new Heed({ editor }).')
    const agent = host.getAgentById(agentId)
    if (!agent.editable.instructions && agent.editable.tools === false) throw locked(agentId, [])
    const threads = (await agent.resolveStorage(requestContext)).threads()
    await threads.open()
    return { agent, store: threads.store, host }
  }

  async #page(of: string, agentId: string, query: EditPageQuery) {
    checkNames(of, query, ['before', 'limit', 'requestContext'])
    const { before, limit = 100, requestContext } = query
    if (before !== undefined) checkWhole('before', before, 1)
    checkWhole('limit', limit, 1)
    const { store } = await this.#open(agentId, { requestContext })
    return { store, page: { agentId, limit, ...(before !== undefined && { before }) } }
  }
}

function asked({ requestContext }: { requestContext?: RequestContext | undefined }): EditRequest {
  return requestContext ? { requestContext } : {}
}

function authorOf({ by, why }: { by: unknown; why?: unknown }): EditAuthor {
  checkText('by', by)
  if (by.length > 256 || !isName(by)) throw refused('by', 'a name of at most 256 characters')
  if (why === undefined) return { by }
  checkText('why', why)
  if (why.length > 4_096 || !isName(why)) throw refused('why', 'a text of at most 4,096 characters')
  return { by, why }
}

function checkRules(rules: unknown): asserts rules is ReleaseRule[] {
  if (!Array.isArray(rules) || rules.length > maxRules) throw refused('rules', `a list of at most ${maxRules} rules`)
  for (const [index, rule] of rules.entries()) checkRule(`rules[${index}]`, rule)
}

function checkRule(field: string, rule: unknown): void {
  checkNames(field, rule, ['version', 'context', 'resources', 'percent'])
  const { version, context, resources, percent } = rule as Record<string, unknown>
  checkWhole(`${field}.version`, version)
  if (context === undefined && resources === undefined && percent === undefined) {
    throw refused(field, 'a rule with a condition: context, resources or percent')
  }
  if (percent !== undefined && !(typeof percent === 'number' && percent >= 0 && percent <= 100)) {
    throw refused(`${field}.percent`, 'a number from 0 to 100')
  }
  if (resources !== undefined && !isListOf(resources, isName)) throw refused(`${field}.resources`, 'a list of resource ids')
  if (context === undefined) return
  if (!isObject(context) || Object.keys(context).length > maxRules) throw refused(`${field}.context`, 'an object with lists of values')
  for (const [key, values] of Object.entries(context)) {
    if (!isListOf(values, isScalar)) throw refused(`${field}.context.${key}`, 'a list of texts, numbers or booleans')
  }
}

function isListOf(value: unknown, is: (one: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.length <= maxValues && value.every(is)
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' ? value.length <= 1_024 : typeof value === 'boolean' || Number.isFinite(value)
}

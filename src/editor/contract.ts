import type { JSONObject } from '../base/json.ts'

/** What is changed of a tool that code offers: `false` takes it out, `description` is what the model reads of it. */
export type PlainToolOverride = false | { description: string }

/** An override for the requests that its rules fit. */
export interface ToolVariant {
  rules: ContextRules
  override: PlainToolOverride
}

/** What is changed of a tool; of a list, the first whose rules fit counts, and where none fits the tool is as in code. */
export type ToolOverride = PlainToolOverride | readonly ToolVariant[]

/** A value of the request context that a condition compares with. */
export type ContextValue = string | number | boolean

/**
 * One condition: `field` names a value of the request context, `user.plan` one within it. A value that the request does not have fits only
 * `not_exists` and the other opposites.
 */
export type ContextCondition =
  | { field: string; operator: 'exists' | 'not_exists' }
  | { field: string; operator: 'equals' | 'not_equals' | 'contains' | 'not_contains'; value: ContextValue }
  | {
    field: string
    operator: 'greater_than' | 'less_than' | 'greater_than_or_equal' | 'less_than_or_equal'
    value: string | number
  }
  | { field: string; operator: 'in' | 'not_in'; value: readonly ContextValue[] }

/** Which requests something is for: all conditions must fit, or one of them. Up to three levels of groups. */
export interface ContextRules {
  operator: 'AND' | 'OR'
  conditions: ReadonlyArray<ContextCondition | ContextRules>
}

/**
 * A piece of instructions. `{{user.plan || 'free'}}` in a text is replaced by a value of the request context, if code declares its key in
 * `requestContextSchema`. A `prompt_block_ref` is the published version of a prompt block.
 */
export type InstructionBlock =
  | { type: 'text'; content: string }
  | { type: 'prompt_block'; content: string; rules?: ContextRules }
  | { type: 'prompt_block_ref'; id: string }

/** What is changed of an agent: the instructions, and tools by their names. What is left out is as in code. */
export interface AgentOverrides {
  /** A text, or blocks, which are joined by an empty line. Where the rules leave no block, the instructions are as in code. */
  instructions?: string | readonly InstructionBlock[]
  tools?: Record<string, ToolOverride>
}

/** A piece of instructions that agents share: they refer to it by its id. */
export interface PromptBlock {
  content: string
  /** The requests that it is for. Without them it is for all. */
  rules?: ContextRules
  /** For those who edit it. */
  description?: string
}

/** Who changes something, and why. */
export interface EditAuthor {
  /** Names the person or program. */
  by: string
  why?: string
}

/** What has versions: an agent, or a prompt block. */
export interface EditSubject {
  kind: 'agent' | 'block'
  id: string
}

/** Who deleted a version, when and why. Its contents are gone; its number stays, and is not used again. */
export interface VersionDeletion extends EditAuthor {
  at: number
}

/** Overrides of an agent. A version never changes. */
export interface AgentVersion extends EditAuthor {
  agentId: string
  /** From 1. Version 0 is code without overrides. */
  version: number
  /** The version that it was made from. */
  base: number
  overrides: AgentOverrides
  createdAt: number
  /** Of a version that was deleted. It has no overrides. */
  deleted?: VersionDeletion
}

/** A version as it is stored: of an agent its overrides, of a prompt block the block. */
export interface StoredVersion extends EditSubject, EditAuthor {
  version: number
  base: number
  contents: AgentOverrides | PromptBlock
  createdAt: number
  deleted?: VersionDeletion
}

/** A version for some runs: those that meet all conditions. */
export interface ReleaseRule {
  version: number
  /** For each key of the request context, the values that fit. */
  context?: Record<string, ReadonlyArray<string | number | boolean>>
  /** Runs of these resources. */
  resources?: readonly string[]
  /**
   * A share of the resources, from 0 to 100. A resource stays on its side while the rule has this version; runs without a resource are
   * divided by thread, and those without either are not meant.
   */
  percent?: number
}

/** Which version each run gets, from a time on. A release never changes; the newest counts. */
export interface StoredRelease extends EditSubject, EditAuthor {
  /** From 1. */
  release: number
  /** For runs that no rule fits. 0: code without overrides; of a prompt block: it is not published. */
  version: number
  /** The first that fits decides. */
  rules?: readonly ReleaseRule[]
  /** Of a rollback: the release whose versions it has; 0: the time before the first. */
  restores?: number
  createdAt: number
}

/** Which version of an agent each run gets, from a time on. */
export interface Release extends Omit<StoredRelease, 'kind' | 'id'> {
  agentId: string
}

/** What a run was given when it began. It keeps it until its end, also in another process. */
export interface RunEdit {
  version: number
  /** Absent where the run tried a version that its caller named. */
  release?: number
  /** The version of each prompt block that the version refers to. */
  blocks?: Record<string, number>
}

/** Which version a caller tries: a number, or `draft`: the latest version of the agent and of its prompt blocks. */
export type TriedVersion = number | 'draft'

/** A draft: rejected with `edit_conflict` unless `base` is the latest version. */
export interface NewVersion extends EditSubject, EditAuthor {
  base: number
  contents: AgentOverrides | PromptBlock
  now: number
}

/** A change of what runs get: rejected with `edit_conflict` unless `expected` is the newest release; 0 where there is none. */
export interface NewRelease extends EditSubject, EditAuthor {
  expected: number
  version: number
  rules?: readonly ReleaseRule[]
  now: number
}

/** The versions of an earlier release again; without `to`, of the one before. The same condition as for a release. */
export interface NewRollback extends EditSubject, EditAuthor {
  expected: number
  to?: number
  now: number
}

/** A version to delete; without `version`, all of them. */
export interface DeletedVersions extends EditSubject, EditAuthor {
  version?: number
  now: number
}

/** A page of versions or releases, the newest first. */
export interface EditQuery extends EditSubject {
  /** Those below. */
  before?: number
  limit: number
}

/** The same of versions: those that were deleted, or the others. */
export interface VersionQuery extends EditQuery {
  deleted?: boolean
}

/**
 * Versions of agents and of prompt blocks, and which of them runs get; in the database of the threads, so that the transaction that begins
 * a run reads the newest release and stores with the run what it got. Versions and releases are only added; a version that no unfinished
 * run has and that runs do not get may be deleted.
 */
export interface EditStore {
  /** Contents that equal those of the latest version make no new one: the latest is returned, with `created: false`. */
  saveVersion(draft: NewVersion): Promise<{ version: StoredVersion; created: boolean }>
  /** Rejects with `unknown_version` where a version does not exist, or refers to a prompt block that is not published. */
  publishVersion(release: NewRelease): Promise<StoredRelease>
  /** Rejects with `unknown_version` where there is no such release, or none before its first. */
  rollBackVersion(rollback: NewRollback): Promise<StoredRelease>
  /** Returns their numbers. Rejects with `edit_in_use` where runs get one of them, or an unfinished run has it. */
  deleteVersions(asked: DeletedVersions): Promise<number[]>
  getVersion(of: EditSubject, version: number): Promise<StoredVersion | null>
  listVersions(query: VersionQuery): Promise<{ versions: StoredVersion[]; more: boolean }>
  listReleases(query: EditQuery): Promise<{ releases: StoredRelease[]; more: boolean }>
  /** The prompt blocks that have versions, by their ids. */
  listPromptBlocks(query: { after?: string; limit: number }): Promise<{ ids: string[]; more: boolean }>
  /** The agents whose newest release has a version that refers to the prompt block. */
  listBlockUsers(blockId: string): Promise<string[]>
  /** What a run gets that begins now; undefined where the agent has no release. */
  editOfRun(run: RunToEdit, tried?: TriedVersion): Promise<RunEdit | undefined>
}

/** What the code of an agent lets be edited. `descriptions`: those of its tools; `membership`: also which of them it has. */
export interface Editable {
  instructions: boolean
  tools: false | 'descriptions' | 'membership'
}

/** What an editor may change of an agent. Fields that are left out come from code. */
export interface EditorFields {
  instructions?: boolean
  /** `true`: which tools the agent has, and their descriptions; `{ description: true }`: the descriptions alone. */
  tools?: boolean | { description?: boolean }
}

/** A run that asks for its overrides. */
export interface RunForEditor {
  agentId: string
  edit: RunEdit
  /** The part of the request context that is stored. */
  context: JSONObject
  /** The keys that code declares in `requestContextSchema`. */
  keys: readonly string[]
  /** The tags that the agent reserves for its own signals. */
  tags: readonly string[]
}

/** The overrides of a version for one run. */
export interface ResolvedOverrides {
  instructions?: string
  tools?: Record<string, PlainToolOverride>
  /** Places of templates that have no value and no default: they stay as they are written. */
  unset: string[]
}

/** What runs need of an editor. */
export interface RunEditor {
  /** Rejects with `unknown_version` where the version or a prompt block of it does not exist. */
  overridesFor(store: EditStore, run: RunForEditor): Promise<ResolvedOverrides>
  /** Whether it was called with these texts before: what is reported about a version is reported once. */
  isReported(store: EditStore, about: string): boolean
}

/** What a run is known by when a release decides about it. */
export interface RunToEdit {
  agentId: string
  threadId?: string
  resourceId?: string
  /** The part of the request context that is stored. */
  context: JSONObject
}

/** What the transaction that begins a run reads. */
export interface EditReads {
  /** The newest release of an agent, and the prompt blocks that each version of it refers to. */
  newestRelease(agentId: string): { release: StoredRelease; blocks: Readonly<Record<string, readonly string[]>> } | undefined
  /** A version of an agent; without a number the latest. */
  agentVersion(agentId: string, version?: number): StoredVersion | undefined
  /** The version of a prompt block that runs get; with `draft` its latest. */
  blockVersion(blockId: string, draft: boolean): number | undefined
}

import type { JSONObject } from '../base/json.ts'

/** What is changed of a tool that code offers: `false` takes it out, `description` is what the model reads of it. */
export type ToolOverride = false | { description: string }

/** What is changed of an agent: the instructions, and tools by their names. What is left out is as in code. */
export interface AgentOverrides {
  instructions?: string
  tools?: Record<string, ToolOverride>
}

/** Who changes something, and why. */
export interface EditAuthor {
  /** Names the person or program. */
  by: string
  why?: string
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
export interface Release extends EditAuthor {
  agentId: string
  /** From 1. */
  release: number
  /** For runs that no rule fits. 0: code without overrides. */
  version: number
  /** The first that fits decides. */
  rules?: readonly ReleaseRule[]
  /** Of a rollback: the release whose versions it has; 0: the time before the first. */
  restores?: number
  createdAt: number
}

/** What a run was given when it began. It keeps it until its end, also in another process. */
export interface RunEdit {
  version: number
  /** Absent where the run tried a version that its caller named. */
  release?: number
}

/** A draft: rejected with `edit_conflict` unless `base` is the latest version. */
export interface NewVersion extends EditAuthor {
  agentId: string
  base: number
  overrides: AgentOverrides
  now: number
}

/** A change of what runs get: rejected with `edit_conflict` unless `expected` is the newest release; 0 where there is none. */
export interface NewRelease extends EditAuthor {
  agentId: string
  expected: number
  version: number
  rules?: readonly ReleaseRule[]
  now: number
}

/** The versions of an earlier release again; without `to`, of the one before. The same condition as for a release. */
export interface NewRollback extends EditAuthor {
  agentId: string
  expected: number
  to?: number
  now: number
}

/** A page of versions or releases, the newest first. */
export interface EditQuery {
  agentId: string
  /** Those below. */
  before?: number
  limit: number
}

/**
 * Versions of agents, and which of them runs get; in the database of the threads, so that the transaction that begins a run reads the
 * newest release and stores with the run what it got. Nothing is changed or removed: versions and releases are only added.
 */
export interface EditStore {
  /** Contents that equal those of the latest version make no new one: the latest is returned, with `created: false`. */
  saveAgentVersion(draft: NewVersion): Promise<{ version: AgentVersion; created: boolean }>
  /** Rejects with `unknown_version` where the agent has no such version. */
  publishAgent(release: NewRelease): Promise<Release>
  /** Rejects with `unknown_version` where the agent has no such release, or none before its first. */
  rollBackAgent(rollback: NewRollback): Promise<Release>
  getAgentVersion(agentId: string, version: number): Promise<AgentVersion | null>
  listAgentVersions(query: EditQuery): Promise<{ versions: AgentVersion[]; more: boolean }>
  listReleases(query: EditQuery): Promise<{ releases: Release[]; more: boolean }>
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

/** What runs need of an editor. */
export interface RunEditor {
  /** The overrides of a version: none for 0. Rejects with `unknown_version`. */
  overridesOf(store: EditStore, agentId: string, version: number): Promise<AgentOverrides>
  /** Whether it was called with these overrides before: what is reported about a version is reported once. */
  isReported(overrides: AgentOverrides): boolean
}

/** What a run is known by when a release decides about it. */
export interface RunToEdit {
  agentId: string
  threadId?: string
  resourceId?: string
  /** The part of the request context that is stored. */
  context: JSONObject
}

import { HeedError } from '../base/errors.ts'
import { isObject, orderedJSON, type JSONObject } from '../base/json.ts'
import type {
  AgentOverrides, AgentVersion, Editable, EditAuthor, NewRelease, NewRollback, NewVersion, Release, ReleaseRule, RunEdit, RunToEdit,
} from './contract.ts'

/** The version that a draft becomes; undefined where the latest has the same contents. Rejects a draft of an older base. */
export function planVersion(latest: AgentVersion | undefined, draft: NewVersion): AgentVersion | undefined {
  const { now, ...rest } = draft
  if (draft.base !== (latest?.version ?? 0)) throw conflict(draft.agentId, 'version', draft.base, latest?.version ?? 0, latest)
  if (latest && orderedJSON(latest.overrides) === orderedJSON(draft.overrides)) return undefined
  return { ...rest, version: draft.base + 1, createdAt: now }
}

/** The next release. Rejects one that was made without knowledge of the newest. */
export function planRelease(newest: Release | undefined, asked: NewRelease): Release {
  const { expected, now, ...rest } = asked
  checkExpected(newest, asked)
  return { ...rest, release: expected + 1, createdAt: now }
}

/** The release whose versions a rollback restores: the one that is named, else the one before the newest. 0: before the first. */
export function restoredBy(newest: Release | undefined, asked: NewRollback): number {
  checkExpected(newest, asked)
  const shown = newest?.restores ?? newest?.release ?? 0
  const restored = asked.to ?? shown - 1
  if (restored < 0 || restored > asked.expected)
    throw new HeedError('unknown_version', `Agent '${asked.agentId}' has no release to roll back to.`, {
      details: { agentId: asked.agentId, release: restored },
    })
  return restored
}

/** The release of a rollback. `restored` is undefined for the time before the first release. */
export function planRollback(asked: NewRollback, restored: Release | undefined): Release {
  const { expected, to: _, now, ...rest } = asked
  return {
    ...rest, release: expected + 1, version: restored?.version ?? 0, ...(restored?.rules && { rules: restored.rules }),
    restores: restored?.release ?? 0, createdAt: now,
  }
}

function checkExpected(newest: Release | undefined, { agentId, expected }: { agentId: string; expected: number }): void {
  if (expected !== (newest?.release ?? 0)) throw conflict(agentId, 'release', expected, newest?.release ?? 0, newest)
}

function conflict(
  agentId: string, kind: 'version' | 'release', expected: number, latest: number, by: (EditAuthor & { createdAt: number }) | undefined,
): HeedError {
  const whose = by ? `, made by ${by.by}` : ''
  const message = `Agent '${agentId}' has ${kind} ${latest}${whose}, not ${expected}. Read it, and make your change again.`
  return new HeedError('edit_conflict', message, {
    details: { agentId, kind, expected, latest, ...(by && { by: by.by, at: by.createdAt, ...(by.why !== undefined && { why: by.why }) }) },
  })
}

/** All versions that a release names. */
export function versionsIn({ version, rules = [] }: Pick<Release, 'version' | 'rules'>): number[] {
  return [...new Set([version, ...rules.map((rule) => rule.version)])].filter((number) => number > 0)
}

/** The version of a run: that of the first rule that fits, else that of the release. */
export function versionFor({ version, rules = [] }: Pick<Release, 'version' | 'rules'>, run: RunToEdit): number {
  return rules.find((rule) => fits(rule, run))?.version ?? version
}

function fits({ version, context = {}, resources, percent }: ReleaseRule, run: RunToEdit): boolean {
  if (resources && (run.resourceId === undefined || !resources.includes(run.resourceId))) return false
  for (const [key, values] of Object.entries(context)) {
    const value = Object.hasOwn(run.context, key) ? run.context[key] : undefined
    if (!values.some((one) => one === value)) return false
  }
  if (percent === undefined) return true
  const unit = run.resourceId ?? run.threadId
  return unit !== undefined && placeOf(`${run.agentId}\n${version}\n${unit}`) * 100 < percent
}

/** A number from 0 to 1 (exclusive), evenly distributed: FNV-1a, and mixed, since the last characters alone change little of it. */
function placeOf(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

/** What a run gets that begins now: the version that its options name, else that of the newest release. Undefined: code, and no release. */
export function editOf(newest: Release | undefined, options: JSONObject, run: Omit<RunToEdit, 'context'>): RunEdit | undefined {
  if (typeof options.agentVersion === 'number') return { version: options.agentVersion }
  const context = isObject(options.requestContext) ? options.requestContext : {}
  return newest && { version: versionFor(newest, { ...run, context }), release: newest.release }
}

/** The part of stored overrides that code lets count now: a field may have been locked since it was saved. */
export function countingOverrides({ instructions, tools = {} }: AgentOverrides, editable: Editable): AgentOverrides {
  const counting = Object.entries(tools).filter(([, override]) =>
    override === false ? editable.tools === 'membership' : editable.tools !== false)
  return {
    ...(instructions !== undefined && editable.instructions && { instructions }),
    ...(counting.length > 0 && { tools: Object.fromEntries(counting) }),
  }
}

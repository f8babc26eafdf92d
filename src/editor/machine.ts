import { HeedError } from '../base/errors.ts'
import { isObject, isStorable, orderedJSON, type JSONObject, type JSONValue } from '../base/json.ts'
import type {
  AgentOverrides, Editable, EditAuthor, EditReads, EditSubject, InstructionBlock, NewRelease, NewRollback, NewVersion, PlainToolOverride,
  PromptBlock, ReleaseRule, RunEdit, RunToEdit, StoredRelease, StoredVersion, TriedVersion,
} from './contract.ts'

/**
 * The version that a draft becomes; undefined where the latest has the same contents. Rejects a draft of an older base. `last` is the
 * highest number that was given, also to a version that was deleted.
 */
export function planVersion(latest: StoredVersion | undefined, last: number, draft: NewVersion): StoredVersion | undefined {
  const { now, ...rest } = draft
  if (draft.base !== (latest?.version ?? 0)) throw conflict(draft, 'version', draft.base, latest?.version ?? 0, latest)
  if (latest && orderedJSON(latest.contents) === orderedJSON(draft.contents)) return undefined
  return { ...rest, version: last + 1, createdAt: now }
}

/** The next release. Rejects one that was made without knowledge of the newest, and one that would unpublish a prompt block. */
export function planRelease(newest: StoredRelease | undefined, asked: NewRelease): StoredRelease {
  const { expected, now, ...rest } = asked
  checkExpected(newest, asked)
  if (asked.kind === 'block' && asked.version === 0) throw unknownVersion(asked, 0)
  return { ...rest, release: expected + 1, createdAt: now }
}

/** The release whose versions a rollback restores: the one that is named, else the one before the newest. 0: before the first. */
export function restoredBy(newest: StoredRelease | undefined, asked: NewRollback): number {
  checkExpected(newest, asked)
  const shown = newest?.restores ?? newest?.release ?? 0
  const restored = asked.to ?? shown - 1
  // A prompt block has no code to go back to.
  const first = asked.kind === 'block' ? 1 : 0
  if (restored < first || restored > asked.expected)
    throw new HeedError('unknown_version', `${nameOf(asked)} has no release to roll back to.`, {
      details: { ...namedIn(asked), release: restored },
    })
  return restored
}

/** The release of a rollback. `restored` is undefined for the time before the first release. */
export function planRollback(asked: NewRollback, restored: StoredRelease | undefined): StoredRelease {
  const { expected, to: _, now, ...rest } = asked
  return {
    ...rest, release: expected + 1, version: restored?.version ?? 0, ...(restored?.rules && { rules: restored.rules }),
    restores: restored?.release ?? 0, createdAt: now,
  }
}

function checkExpected(newest: StoredRelease | undefined, asked: NewRelease | NewRollback): void {
  const { expected } = asked
  if (expected !== (newest?.release ?? 0)) throw conflict(asked, 'release', expected, newest?.release ?? 0, newest)
}

function conflict(
  subject: EditSubject, kind: 'version' | 'release', expected: number, latest: number,
  by: (EditAuthor & { createdAt: number }) | undefined,
): HeedError {
  const whose = by ? `, made by ${by.by}` : ''
  const message = `${nameOf(subject)} has ${kind} ${latest}${whose}, not ${expected}. Read it, and make your change again.`
  return new HeedError('edit_conflict', message, {
    details: {
      ...namedIn(subject), kind, expected, latest,
      ...(by && { by: by.by, at: by.createdAt, ...(by.why !== undefined && { why: by.why }) }),
    },
  })
}

/** An agent or a prompt block, as it is named in errors. */
export function nameOf({ kind, id }: EditSubject): string {
  return `${kind === 'agent' ? 'Agent' : 'Prompt block'} '${id}'`
}

/** The same in their details. */
export function namedIn({ kind, id }: EditSubject): JSONObject {
  return kind === 'agent' ? { agentId: id } : { blockId: id }
}

/** Rejects the deletion of a version that the newest release gives to runs. */
export function checkDeletion(
  subject: EditSubject, versions: readonly number[], released: readonly number[], users: readonly string[],
): void {
  const used = versions.find((version) => released.includes(version))
  if (used === undefined || (subject.kind === 'block' && versions.length > 1 && users.length === 0)) return
  const who = users.length > 0 ? ` The agents ${users.join(', ')} refer to it.` : ''
  throw inUse(subject, used, `runs get version ${used}.${who} Publish another version first.`)
}

export function inUse(subject: EditSubject, version: number, why: string): HeedError {
  return new HeedError('edit_in_use', `${nameOf(subject)} can't be deleted: ${why}`, { details: { ...namedIn(subject), version } })
}

export function unknownVersion(subject: EditSubject, version: number): HeedError {
  const isUnpublished = subject.kind === 'block' && version === 0
  const why = isUnpublished ? 'is not published. Publish a version of it.' : `has no version ${version}.`
  const message = `${nameOf(subject)} ${why}`
  return new HeedError('unknown_version', message, { details: { ...namedIn(subject), version } })
}

/** All versions that a release names. */
export function versionsIn({ version, rules = [] }: Pick<StoredRelease, 'version' | 'rules'>): number[] {
  return [...new Set([version, ...rules.map((rule) => rule.version)])].filter((number) => number > 0)
}

/** The prompt blocks that contents refer to, in their order. */
export function blocksIn(contents: AgentOverrides | PromptBlock): string[] {
  const { instructions } = contents as AgentOverrides
  if (!Array.isArray(instructions)) return []
  const blocks = instructions as readonly InstructionBlock[]
  return [...new Set(blocks.flatMap((block) => (block.type === 'prompt_block_ref' ? [block.id] : [])))]
}

/** The version of a run: that of the first rule that fits, else that of the release. */
export function versionFor({ version, rules = [] }: Pick<StoredRelease, 'version' | 'rules'>, run: RunToEdit): number {
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

/** The run that stored options are of: what a release decides by. */
export function runToEdit(options: JSONObject, run: Omit<RunToEdit, 'context'>): RunToEdit {
  return { ...run, context: isObject(options.requestContext) ? options.requestContext : {} }
}

/** The part of a request context that is stored with a run, and that a later process reads again. */
export function storablePart(entries: Iterable<readonly [string, unknown]> = []): JSONObject {
  return Object.fromEntries([...entries].filter((entry): entry is [string, JSONValue] => isStorable(entry[1])))
}

/** The version that stored options name. */
export function triedIn({ agentVersion }: JSONObject): TriedVersion | undefined {
  return typeof agentVersion === 'number' || agentVersion === 'draft' ? agentVersion : undefined
}

/**
 * What a run gets that begins now: the version that it tries, else that of the newest release, with the versions of its prompt blocks.
 * Undefined: code, and no release. A block that is not published is left out: the run that needs it fails.
 */
export function editOf(reads: EditReads, run: RunToEdit, tried: TriedVersion | undefined): RunEdit | undefined {
  const { agentId } = run
  if (tried !== undefined) {
    const found = tried === 0 ? undefined : reads.agentVersion(agentId, tried === 'draft' ? undefined : tried)
    const version = tried === 'draft' ? (found?.version ?? 0) : tried
    return { version, ...pinned(reads, found ? blocksIn(found.contents) : [], tried === 'draft') }
  }
  const newest = reads.newestRelease(agentId)
  if (!newest) return undefined
  const version = versionFor(newest.release, run)
  const { blocks } = newest
  const ids = Object.hasOwn(blocks, version) ? (blocks[version] ?? []) : []
  return { version, release: newest.release.release, ...pinned(reads, ids, false) }
}

function pinned(reads: EditReads, ids: readonly string[], draft: boolean): { blocks?: Record<string, number> } {
  if (ids.length === 0) return {}
  const versions = ids.map((id) => [id, reads.blockVersion(id, draft)] as const)
  return { blocks: Object.fromEntries(versions.filter((entry): entry is [string, number] => entry[1] !== undefined)) }
}

/** The part of overrides that code lets count now: a field may have been locked since it was saved. */
export function countingOverrides(
  { instructions, tools = {} }: { instructions?: string; tools?: Record<string, PlainToolOverride> }, editable: Editable,
): { instructions?: string; tools?: Record<string, PlainToolOverride> } {
  const counting = Object.entries(tools).filter(([, override]) =>
    override === false ? editable.tools === 'membership' : editable.tools !== false)
  return {
    ...(instructions !== undefined && editable.instructions && { instructions }),
    ...(counting.length > 0 && { tools: Object.fromEntries(counting) }),
  }
}

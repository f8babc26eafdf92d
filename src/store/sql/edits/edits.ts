import {
  blocksIn, checkDeletion, editOf, inUse, planRelease, planRollback, planVersion, restoredBy, unknownVersion, versionsIn,
} from '../../../editor/machine.ts'
import type {
  AgentOverrides, DeletedVersions, EditQuery, EditSubject, NewRelease, NewRollback, NewVersion, PromptBlock, ReleaseRule, RunEdit,
  RunToEdit, StoredRelease, StoredVersion, TriedVersion, VersionDeletion, VersionQuery,
} from '../../../editor/contract.ts'
import type { EditTable } from '../../core/tables.ts'
import type { Statements } from '../statements.ts'

interface VersionRecord {
  id: string
  version: number
  base: number
  contents: string
  by: string
  why: string | null
  createdAt: number
  deleted: string | null
}

interface ReleaseRecord {
  id: string
  release: number
  version: number
  rules: string | null
  restores: number | null
  by: string
  why: string | null
  createdAt: number
  /** The prompt blocks that each version of the release refers to. */
  blocks: string | null
}

const noBound = Number.MAX_SAFE_INTEGER

/** The statements of versions and releases of agents, or of prompt blocks. */
function textsOf({ table, id, contents, rules, blocks }: { table: string; id: string; contents: string; rules: string; blocks: string }) {
  const [versions, releases] = [`heed_${table}_versions`, `heed_${table}_releases`]
  const version = `${id} AS id, version, base, ${contents} AS contents, author AS by, why, created_at AS createdAt, deleted`
  const release = `
    ${id} AS id, release, version, ${rules} AS rules, ${blocks} AS blocks, restores, author AS by, why, created_at AS createdAt`
  const more = rules === 'NULL' ? { columns: '', values: '' } : { columns: ', rules, blocks', values: ', ?, ?' }
  return {
    versions: `SELECT ${version} FROM ${versions} WHERE ${id} = ? AND version < ? AND deleted IS NULL ORDER BY version DESC LIMIT ?`,
    deleted: `SELECT ${version} FROM ${versions} WHERE ${id} = ? AND version < ? AND deleted IS NOT NULL ORDER BY version DESC LIMIT ?`,
    version: `SELECT ${version} FROM ${versions} WHERE ${id} = ? AND version = ? AND deleted IS NULL`,
    last: `SELECT version FROM ${versions} WHERE ${id} = ? ORDER BY version DESC LIMIT 1`,
    addVersion: `
      INSERT INTO ${versions} (${id}, version, base, ${contents}, author, why, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
    deleteVersion: `UPDATE ${versions} SET ${contents} = '{}', deleted = ? WHERE ${id} = ? AND version = ?`,
    releases: `SELECT ${release} FROM ${releases} WHERE ${id} = ? AND release < ? ORDER BY release DESC LIMIT ?`,
    release: `SELECT ${release} FROM ${releases} WHERE ${id} = ? AND release = ?`,
    addRelease: `
      INSERT INTO ${releases} (${id}, release, version, restores, author, why, created_at${more.columns})
      VALUES (?, ?, ?, ?, ?, ?, ?${more.values})`,
  }
}

const texts = {
  agent: textsOf({ table: 'agent', id: 'agent_id', contents: 'overrides', rules: 'rules', blocks: 'blocks' }),
  block: textsOf({ table: 'block', id: 'block_id', contents: 'contents', rules: 'NULL', blocks: 'NULL' }),
}

/** Statements about prompt blocks, and about the runs that have a version. */
export const editSql = {
  published: `
    SELECT v.version AS version FROM heed_block_versions v WHERE v.block_id = ?1 AND v.deleted IS NULL
    AND v.version = (SELECT r.version FROM heed_block_releases r WHERE r.block_id = ?1 ORDER BY r.release DESC LIMIT 1)`,
  blockIds: `
    SELECT DISTINCT block_id AS id FROM heed_block_versions WHERE block_id > ? AND deleted IS NULL ORDER BY block_id LIMIT ?`,
  users: `
    SELECT r.agent_id AS id, r.blocks AS blocks FROM heed_agent_releases r WHERE r.blocks IS NOT NULL
    AND r.release = (SELECT max(n.release) FROM heed_agent_releases n WHERE n.agent_id = r.agent_id) ORDER BY r.agent_id`,
  waiting: `SELECT agent_id AS agentId, options FROM heed_runs WHERE status = 'suspended' AND options LIKE ?`,
  running: `
    SELECT r.agent_id AS agentId, r.options AS options FROM heed_threads t JOIN heed_runs r ON r.run_id = t.run_id AND r.thread = t.key
    WHERE t.status <> 'idle' AND r.options LIKE ?`,
}

/** What the transaction that begins a run reads. */
export class SqlReleases implements EditTable {
  readonly #db: Statements

  constructor(statements: Statements) {
    this.#db = statements
  }

  newestRelease(agentId: string): ReturnType<EditTable['newestRelease']> {
    const found = this.newestRecord({ kind: 'agent', id: agentId })
    if (!found) return undefined
    const blocks = found.blocks === null ? {} : (JSON.parse(found.blocks) as Record<string, string[]>)
    return { release: releaseOf('agent', found), blocks }
  }

  agentVersion(agentId: string, version?: number): StoredVersion | undefined {
    const of = { kind: 'agent', id: agentId } as const
    return version === undefined ? latestOf(this.#db, of) : (getVersion(this.#db, of, version) ?? undefined)
  }

  blockVersion(blockId: string, draft: boolean): number | undefined {
    if (draft) return latestOf(this.#db, { kind: 'block', id: blockId })?.version
    return this.#db.one<{ version: number }>(editSql.published, blockId)?.version
  }

  newestRecord({ kind, id }: EditSubject): ReleaseRecord | undefined {
    return this.#db.all<ReleaseRecord>(texts[kind].releases, id, noBound, 1)[0]
  }
}

export function saveVersion(statements: Statements, draft: NewVersion): { version: StoredVersion; created: boolean } {
  statements.lockDomain?.('edits', [lockOf(draft)])
  const text = texts[draft.kind]
  const latest = latestOf(statements, draft)
  const last = statements.one<{ version: number }>(text.last, draft.id)?.version ?? 0
  const planned = planVersion(latest, last, draft)
  if (!planned) return { version: latest as StoredVersion, created: false }
  const { id, version, base, contents, by, why = null, createdAt } = planned
  statements.execute(text.addVersion, id, version, base, JSON.stringify(contents), by, why, createdAt)
  return { version: planned, created: true }
}

export function publishVersion(statements: Statements, asked: NewRelease): StoredRelease {
  return addRelease(statements, asked, (newest) => planRelease(newest, asked))
}

export function rollBackVersion(statements: Statements, asked: NewRollback): StoredRelease {
  return addRelease(statements, asked, (newest) => {
    const found = statements.one<ReleaseRecord>(texts[asked.kind].release, asked.id, restoredBy(newest, asked))
    return planRollback(asked, found && releaseOf(asked.kind, found))
  })
}

function addRelease(
  statements: Statements, subject: EditSubject, plan: (newest: StoredRelease | undefined) => StoredRelease,
): StoredRelease {
  statements.lockDomain?.('edits', [lockOf(subject)])
  const newest = new SqlReleases(statements).newestRecord(subject)
  const planned = plan(newest && releaseOf(subject.kind, newest))
  const blocks = blocksOf(statements, planned)
  const { kind, id, release, version, rules, restores = null, by, why = null, createdAt } = planned
  const row = [id, release, version, restores, by, why, createdAt]
  if (kind === 'block') statements.execute(texts.block.addRelease, ...row)
  else statements.execute(texts.agent.addRelease, ...row, rules ? JSON.stringify(rules) : null, blocks)
  return planned
}

/** The prompt blocks of each version of a release. Rejects one with a version, or a block, that runs could not get. */
function blocksOf(statements: Statements, planned: StoredRelease): string | null {
  const found: Array<[number, string[]]> = []
  for (const version of versionsIn(planned)) {
    const stored = getVersion(statements, planned, version)
    if (!stored) throw unknownVersion(planned, version)
    const ids = blocksIn(stored.contents)
    const missing = ids.find((id) => new SqlReleases(statements).blockVersion(id, false) === undefined)
    if (missing !== undefined) throw unknownVersion({ kind: 'block', id: missing }, 0)
    if (ids.length > 0) found.push([version, ids])
  }
  return found.length === 0 ? null : JSON.stringify(Object.fromEntries(found))
}

export function deleteVersions(statements: Statements, { version, now, ...asked }: DeletedVersions): number[] {
  statements.lockDomain?.('edits', [lockOf(asked)])
  const text = texts[asked.kind]
  const live = statements.all<VersionRecord>(text.versions, asked.id, noBound, noBound).map((record) => record.version)
  if (version !== undefined && !live.includes(version)) throw unknownVersion(asked, version)
  const versions = version === undefined ? live : [version]
  const newest = new SqlReleases(statements).newestRecord(asked)
  const users = asked.kind === 'block' ? listBlockUsers(statements, asked.id) : []
  checkDeletion(asked, versions, newest ? versionsIn(releaseOf(asked.kind, newest)) : [], users)
  for (const one of versions) checkUnfinished(statements, asked, one)
  const deletion: VersionDeletion = { by: asked.by, at: now, ...(asked.why !== undefined && { why: asked.why }) }
  for (const one of versions) statements.execute(text.deleteVersion, JSON.stringify(deletion), asked.id, one)
  return versions
}

/** Rejects where a run that goes on later has the version. */
function checkUnfinished(statements: Statements, subject: EditSubject, version: number): void {
  const { kind, id } = subject
  const like = kind === 'agent' ? `%"edit":{"version":${version}%` : `%"edit":%"${id}":${version}%`
  for (const text of [editSql.waiting, editSql.running]) {
    for (const { agentId, options } of statements.all<{ agentId: string; options: string }>(text, like)) {
      const { edit } = JSON.parse(options) as { edit?: RunEdit }
      const pinned = new Map(Object.entries(edit?.blocks ?? {}))
      const has = kind === 'agent' ? agentId === id && edit?.version === version : pinned.get(id) === version
      if (has) throw inUse(subject, version, `a run that is not finished has version ${version}.`)
    }
  }
}

export function getVersion(statements: Statements, { kind, id }: EditSubject, version: number): StoredVersion | null {
  const found = statements.one<VersionRecord>(texts[kind].version, id, version)
  return found ? versionOf(kind, found) : null
}

export function listVersions(
  statements: Statements, { kind, id, before = noBound, limit, deleted = false }: VersionQuery,
): { versions: StoredVersion[]; more: boolean } {
  const found = statements.all<VersionRecord>(deleted ? texts[kind].deleted : texts[kind].versions, id, before, limit + 1)
  return { versions: found.slice(0, limit).map((record) => versionOf(kind, record)), more: found.length > limit }
}

export function listReleases(
  statements: Statements, { kind, id, before = noBound, limit }: EditQuery,
): { releases: StoredRelease[]; more: boolean } {
  const found = statements.all<ReleaseRecord>(texts[kind].releases, id, before, limit + 1)
  return { releases: found.slice(0, limit).map((record) => releaseOf(kind, record)), more: found.length > limit }
}

export function listPromptBlocks(
  statements: Statements, { after = '', limit }: { after?: string; limit: number },
): { ids: string[]; more: boolean } {
  const found = statements.all<{ id: string }>(editSql.blockIds, after, limit + 1).map(({ id }) => id)
  return { ids: found.slice(0, limit), more: found.length > limit }
}

export function listBlockUsers(statements: Statements, blockId: string): string[] {
  return statements.all<{ id: string; blocks: string }>(editSql.users).flatMap(({ id, blocks }) =>
    Object.values(JSON.parse(blocks) as Record<string, string[]>).flat().includes(blockId) ? [id] : [])
}

export function editOfRun(statements: Statements, run: RunToEdit, tried?: TriedVersion): RunEdit | undefined {
  return editOf(new SqlReleases(statements), run, tried)
}

function latestOf(statements: Statements, { kind, id }: EditSubject): StoredVersion | undefined {
  const [found] = statements.all<VersionRecord>(texts[kind].versions, id, noBound, 1)
  return found && versionOf(kind, found)
}

/** Agents and prompt blocks may have the same id. */
function lockOf({ kind, id }: EditSubject): string {
  return kind === 'agent' ? id : `${kind} ${id}`
}

function versionOf(kind: EditSubject['kind'], { contents, why, deleted, ...record }: VersionRecord): StoredVersion {
  return {
    kind, ...record,
    contents: JSON.parse(contents) as AgentOverrides | PromptBlock,
    ...(why !== null && { why }),
    ...(deleted !== null && { deleted: JSON.parse(deleted) as VersionDeletion }),
  }
}

function releaseOf(kind: EditSubject['kind'], { rules, restores, why, blocks: _, ...record }: ReleaseRecord): StoredRelease {
  return {
    kind, ...record,
    ...(rules !== null && { rules: JSON.parse(rules) as ReleaseRule[] }),
    ...(restores !== null && { restores }),
    ...(why !== null && { why }),
  }
}


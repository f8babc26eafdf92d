import { HeedError } from '../../../base/errors.ts'
import { planRelease, planRollback, planVersion, restoredBy, versionsIn } from '../../../editor/machine.ts'
import type {
  AgentOverrides, AgentVersion, EditQuery, NewRelease, NewRollback, NewVersion, Release, ReleaseRule,
} from '../../../editor/contract.ts'
import type { EditTable } from '../../core/tables.ts'
import type { Statements } from '../statements.ts'

interface VersionRecord {
  agentId: string
  version: number
  base: number
  overrides: string
  by: string
  why: string | null
  createdAt: number
}

interface ReleaseRecord {
  agentId: string
  release: number
  version: number
  rules: string | null
  restores: number | null
  by: string
  why: string | null
  createdAt: number
}

const versionColumns = 'agent_id AS agentId, version, base, overrides, author AS by, why, created_at AS createdAt'
const releaseColumns = 'agent_id AS agentId, release, version, rules, restores, author AS by, why, created_at AS createdAt'
const noBound = Number.MAX_SAFE_INTEGER

/** The statements of versions and releases. */
export const editSql = {
  versions: `SELECT ${versionColumns} FROM heed_agent_versions WHERE agent_id = ? AND version < ? ORDER BY version DESC LIMIT ?`,
  version: `SELECT ${versionColumns} FROM heed_agent_versions WHERE agent_id = ? AND version = ?`,
  addVersion: `
    INSERT INTO heed_agent_versions (agent_id, version, base, overrides, author, why, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  releases: `SELECT ${releaseColumns} FROM heed_agent_releases WHERE agent_id = ? AND release < ? ORDER BY release DESC LIMIT ?`,
  release: `SELECT ${releaseColumns} FROM heed_agent_releases WHERE agent_id = ? AND release = ?`,
  addRelease: `
    INSERT INTO heed_agent_releases (agent_id, release, version, rules, restores, author, why, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
}

/** The releases, for the transaction that begins a run. */
export class SqlReleases implements EditTable {
  readonly #db: Statements

  constructor(statements: Statements) {
    this.#db = statements
  }

  newest(agentId: string): Release | undefined {
    const [found] = this.#db.all<ReleaseRecord>(editSql.releases, agentId, noBound, 1)
    return found && releaseOf(found)
  }
}

export function saveAgentVersion(statements: Statements, draft: NewVersion): { version: AgentVersion; created: boolean } {
  statements.lockDomain?.('edits', [draft.agentId])
  const [found] = statements.all<VersionRecord>(editSql.versions, draft.agentId, noBound, 1)
  const latest = found && versionOf(found)
  const planned = planVersion(latest, draft)
  if (!planned) return { version: latest as AgentVersion, created: false }
  const { agentId, version, base, overrides, by, why = null, createdAt } = planned
  statements.execute(editSql.addVersion, agentId, version, base, JSON.stringify(overrides), by, why, createdAt)
  return { version: planned, created: true }
}

export function publishAgent(statements: Statements, asked: NewRelease): Release {
  return addRelease(statements, asked.agentId, (newest) => {
    const planned = planRelease(newest, asked)
    for (const version of versionsIn(planned)) {
      if (!statements.one(editSql.version, asked.agentId, version)) throw unknownVersion(asked.agentId, version)
    }
    return planned
  })
}

export function rollBackAgent(statements: Statements, asked: NewRollback): Release {
  return addRelease(statements, asked.agentId, (newest) => {
    const restored = restoredBy(newest, asked)
    const found = statements.one<ReleaseRecord>(editSql.release, asked.agentId, restored)
    return planRollback(asked, found && releaseOf(found))
  })
}

function addRelease(statements: Statements, agentId: string, plan: (newest: Release | undefined) => Release): Release {
  statements.lockDomain?.('edits', [agentId])
  const planned = plan(new SqlReleases(statements).newest(agentId))
  const { release, version, rules, restores = null, by, why = null, createdAt } = planned
  statements.execute(editSql.addRelease, agentId, release, version, rules ? JSON.stringify(rules) : null, restores, by, why, createdAt)
  return planned
}

export function getAgentVersion(statements: Statements, agentId: string, version: number): AgentVersion | null {
  const found = statements.one<VersionRecord>(editSql.version, agentId, version)
  return found ? versionOf(found) : null
}

export function listAgentVersions(
  statements: Statements, { agentId, before = noBound, limit }: EditQuery,
): { versions: AgentVersion[]; more: boolean } {
  const found = statements.all<VersionRecord>(editSql.versions, agentId, before, limit + 1)
  return { versions: found.slice(0, limit).map(versionOf), more: found.length > limit }
}

export function listReleases(
  statements: Statements, { agentId, before = noBound, limit }: EditQuery,
): { releases: Release[]; more: boolean } {
  const found = statements.all<ReleaseRecord>(editSql.releases, agentId, before, limit + 1)
  return { releases: found.slice(0, limit).map(releaseOf), more: found.length > limit }
}

function versionOf({ overrides, why, ...record }: VersionRecord): AgentVersion {
  return { ...record, overrides: JSON.parse(overrides) as AgentOverrides, ...(why !== null && { why }) }
}

function releaseOf({ rules, restores, why, ...record }: ReleaseRecord): Release {
  return {
    ...record,
    ...(rules !== null && { rules: JSON.parse(rules) as ReleaseRule[] }),
    ...(restores !== null && { restores }),
    ...(why !== null && { why }),
  }
}

function unknownVersion(agentId: string, version: number): HeedError {
  return new HeedError('unknown_version', `Agent '${agentId}' has no version ${version}.`, { details: { agentId, version } })
}

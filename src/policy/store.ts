import { checkNames, checkWhole } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { PolicySet } from './schema.ts'

/** The policies of a tenant as they were last saved. */
export interface StoredPolicies {
  policies: PolicySet
  /** Grows with each save, from 1. */
  version: number
}

/** Which version a save replaces. */
export interface SavePoliciesOptions {
  /** Rejects the save with `policy_conflict` if another version is stored; 0: none was saved. */
  ifVersion?: number
}

/** Where policies are kept. A write is atomic and durable when it resolves; a read returns the newest version. */
export interface PolicyStore {
  getPolicies(tenant: string): Promise<StoredPolicies | undefined>
  /** Replaces the policies of the tenant and returns their version. */
  savePolicies(tenant: string, policies: PolicySet, options?: SavePoliciesOptions): Promise<number>
}

/** Keeps policies in memory, until the process ends. */
export class InMemoryPolicyStore implements PolicyStore {
  readonly #tenants = new Map<string, StoredPolicies>()

  getPolicies(tenant: string): Promise<StoredPolicies | undefined> {
    return Promise.resolve(this.#tenants.get(tenant))
  }

  async savePolicies(tenant: string, policies: PolicySet, options: SavePoliciesOptions = {}): Promise<number> {
    checkSaveOptions(options)
    const { ifVersion } = options
    const stored = this.#tenants.get(tenant)?.version ?? 0
    if (ifVersion !== undefined && ifVersion !== stored) throw policyConflict(tenant, stored)
    this.#tenants.set(tenant, { policies: { ...policies }, version: stored + 1 })
    return stored + 1
  }
}

export function checkSaveOptions(options: SavePoliciesOptions): void {
  checkNames('savePolicies()', options, ['ifVersion'])
  if (options.ifVersion !== undefined) checkWhole('ifVersion', options.ifVersion)
}

export function policyConflict(tenant: string, version: number): HeedError {
  const message = `The policies of '${tenant}' were changed: version ${version} is stored. Read them and save again.`
  return new HeedError('policy_conflict', message, { details: { tenant, version } })
}

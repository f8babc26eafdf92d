import { createHash } from 'node:crypto'
import { checkName, checkNames, checkObject, checkText, checkWhole, refused } from '../base/arguments.ts'
import { describe, HeedError } from '../base/errors.ts'
import { orderedJSON } from '../base/json.ts'
import { createConsoleLogger, redacting, type Logger } from '../base/logger.ts'
import { categoryReads, uniteReads, type CategoryReads } from './categories.ts'
import { checkPolicies, invalidPolicies, readPolicyText, type CheckedPolicies } from './check.ts'
import { cedarPackage, loadCedar, type CedarEngine, type CedarRequest } from './engine.ts'
import { RecentMap } from '../base/recent-map.ts'
import { cedarRequest, type PolicyRequest } from './request.ts'
import { defaultPolicies, defaultPrefix, policySchema, type PolicySet } from './schema.ts'
import { checkSaveOptions, InMemoryPolicyStore, type PolicyStore, type SavePoliciesOptions } from './store.ts'

/** Why a request was denied without a judgement: the same request may be allowed once the reason is gone. */
export type PolicyFailure =
  /** The policies of the tenant are not loaded: `load()` was not called or failed. */
  | 'not_loaded'
  /** A field of the request is missing or has the wrong type. */
  | 'invalid_request'
  /** A policy could not be evaluated, such as for an overflow. `policyIds` names it. */
  | 'policy_failed'
  /** The message has no categories yet, and a policy may ask for them. */
  | 'categories_unknown'
  /** Cedar rejected the request or failed. */
  | 'engine_failed'

/** Whether a request is allowed, and by which policies. */
export interface PolicyDecision {
  allowed: boolean
  /** The policies that allowed or denied it. Empty if no policy permits it. */
  policyIds: readonly string[]
  /** Identifies the policies that were asked, by their texts. */
  revision: string
  failure?: PolicyFailure
}

/** The policies of a tenant. */
export interface TenantPolicies {
  policies: PolicySet
  /** Grows with each save; 0 before the first. */
  version: number
  /** Identifies these policies with the defaults and those of all tenants, by their texts. */
  revision: string
}

/** The options of `CedarPolicies`. */
export interface CedarPoliciesOptions {
  /** Policies for every tenant, by their ids, or as one text: then `@id("…")` before a policy is its id. */
  policies?: PolicySet | string
  /** What is permitted where no other policy decides. Defaults to `defaultPolicies`, which permit everything; `{}` denies everything. */
  defaults?: PolicySet
  /** Keeps the policies of tenants. Defaults to the memory of this process. */
  store?: PolicyStore
  /** Loads Cedar. Defaults to the installed package `@cedar-policy/cedar-wasm`. */
  engine?: () => Promise<CedarEngine>
  logger?: Logger
  /** How many tenants are kept ready; another one takes the place of that which was not asked for the longest time. Defaults to 1,000. */
  maxTenants?: number
  /** How many decisions are remembered. Defaults to 10,000. */
  maxDecisions?: number
}

const optionNames = ['policies', 'defaults', 'store', 'engine', 'logger', 'maxTenants', 'maxDecisions']

/** Each decision reads every policy of its tenant. */
const maxPolicies = 500
const maxPolicyLength = 16_384
/** A decision about a longer request is not remembered. */
const maxKeyLength = 4_096

const schemaName = 'heed'
/** Preparsed sets have names that are shared by all users of Cedar in this thread. */
let lastInstance = 0

interface Tenant {
  version: number
  revision: string
  /** The name of the preparsed set. */
  preparsed: string
  reads: CategoryReads
}

/** Cedar, ready, with the policies of all tenants. */
interface Ready {
  engine: CedarEngine
  common: PolicySet
  commonRevision: string
  commonReads: CategoryReads
}

/**
 * Decides by policies in the language of Cedar what agents may receive and what users may do. Anything that fails denies.
 *
 * Policies are checked when they are saved, and again when they are loaded. `decide()` is synchronous and asks the policies that were
 * loaded last; `authorize()` loads the newest ones first, so that it knows what another process saved.
 */
export class CedarPolicies {
  readonly #options: CedarPoliciesOptions
  readonly #store: PolicyStore
  readonly #logger: Logger
  readonly #instance = ++lastInstance
  readonly #tenants: RecentMap<Tenant>
  readonly #decisions: RecentMap<PolicyDecision>
  /** Cedar cannot forget a preparsed set: the names of tenants that left are given to others. */
  readonly #freeNames: string[] = []
  #lastName = 0
  #opening: Promise<Ready> | undefined
  #ready: Ready | undefined
  /** The failures of policies that were logged. */
  readonly #logged = new RecentMap<true>(1_000)

  constructor(options: CedarPoliciesOptions = {}) {
    checkNames('CedarPolicies', options, optionNames)
    const { policies, defaults, store, engine, logger, maxTenants = 1_000, maxDecisions = 10_000 } = options
    if (typeof policies === 'string') checkText('policies', policies)
    else if (policies !== undefined) checkSet('policies', policies)
    if (defaults !== undefined) checkSet('defaults', defaults)
    if (store !== undefined && !isStore(store)) throw refused('store', 'a store: an object with getPolicies() and savePolicies()')
    if (engine !== undefined && typeof engine !== 'function') throw refused('engine', 'a function that loads Cedar')
    checkWhole('maxTenants', maxTenants, 1)
    checkWhole('maxDecisions', maxDecisions)
    this.#options = options
    this.#store = store ?? new InMemoryPolicyStore()
    this.#logger = redacting(logger ?? createConsoleLogger())
    this.#tenants = new RecentMap(maxTenants, (tenant) => this.#release(tenant))
    this.#decisions = new RecentMap(maxDecisions)
  }

  /** Loads the newest policies of a tenant. If that fails, every request of the tenant is denied until it succeeds. */
  async load(tenant: string): Promise<void> {
    checkName('tenant', tenant)
    try {
      const ready = await this.#open()
      const stored = await this.#store.getPolicies(tenant)
      this.#use(ready, tenant, stored?.policies ?? {}, stored?.version ?? 0)
    } catch (error) {
      this.#tenants.delete(tenant)
      throw error
    }
  }

  /** Asks the policies that were loaded last. Never throws. */
  decide(request: PolicyRequest): PolicyDecision {
    const tenant = this.#tenants.get(request.tenant)
    const ready = this.#ready
    if (!tenant || !ready) return denied('', 'not_loaded')
    let question: CedarRequest
    try {
      question = cedarRequest(request)
    } catch (error) {
      this.#logger.warn('a request to the policies is invalid and was denied', { action: request.action, reason: describe(error) })
      return denied(tenant.revision, 'invalid_request')
    }
    if (request.context?.categories === 'unknown' && tenant.reads.readsCategories) return denied(tenant.revision, 'categories_unknown')
    const key = `${request.tenant}\0${tenant.revision}\0${JSON.stringify(question)}`
    const known = this.#decisions.get(key)
    if (known) return known
    const decision = this.#ask(ready.engine, tenant, question)
    if (key.length <= maxKeyLength && decision.failure !== 'engine_failed') this.#decisions.set(key, decision)
    return decision
  }

  /** Loads the newest policies of the tenant, and asks them. If they cannot be loaded, the request is denied. Never rejects. */
  async authorize(request: PolicyRequest): Promise<PolicyDecision> {
    try {
      await this.load(request.tenant)
    } catch (error) {
      this.#logger.error('policies could not be loaded: the request was denied', { tenant: request.tenant, error: describe(error) })
      return denied('', 'not_loaded')
    }
    return this.decide(request)
  }

  /**
   * Whether a policy of the tenant may read the categories of a message, by the newest policies. Only then a decision has to wait until a
   * message has categories. True also if the policies cannot be loaded.
   */
  async readsCategories(tenant: string): Promise<boolean> {
    checkName('tenant', tenant)
    try {
      await this.load(tenant)
    } catch {
      return true
    }
    return this.#tenants.get(tenant)?.reads.readsCategories ?? true
  }

  /** The categories that the newest policies of the tenant name: an annotator has to know them. Rejects if they cannot be loaded. */
  async namedCategories(tenant: string): Promise<string[]> {
    await this.load(tenant)
    return [...(this.#tenants.get(tenant)?.reads.categories ?? [])]
  }

  /** Replaces the policies of a tenant. A policy that is invalid is rejected by name, with its place, and nothing is saved. */
  async savePolicies(tenant: string, policies: PolicySet, options: SavePoliciesOptions = {}): Promise<TenantPolicies> {
    checkName('tenant', tenant)
    checkSet('policies', policies)
    checkSaveOptions(options)
    const own = { ...policies }
    const ready = await this.#open()
    check(ready, own)
    const version = await this.#store.savePolicies(tenant, own, options)
    this.#use(ready, tenant, own, version)
    return { policies: own, version, revision: revisionOf({ ...ready.common, ...own }) }
  }

  /** The policies of a tenant as they are stored. */
  async getPolicies(tenant: string): Promise<TenantPolicies> {
    checkName('tenant', tenant)
    const ready = await this.#open()
    const { policies, version } = (await this.#store.getPolicies(tenant)) ?? { policies: {}, version: 0 }
    return { policies, version, revision: revisionOf({ ...ready.common, ...policies }) }
  }

  /** What is wrong with policies, without saving them. A text may hold several: if nothing is wrong, they are returned by their ids. */
  async checkPolicies(policies: PolicySet | string): Promise<CheckedPolicies> {
    const { engine } = await this.#open()
    if (typeof policies === 'string') return readPolicyText(engine, policies)
    checkSet('policies', policies)
    return { policies, problems: checkPolicies(engine, policies) }
  }

  async #open(): Promise<Ready> {
    this.#opening ??= this.#prepare()
    try {
      return (this.#ready = await this.#opening)
    } catch (error) {
      // The next call tries again: the package may be installed meanwhile.
      this.#opening = undefined
      throw error
    }
  }

  async #prepare(): Promise<Ready> {
    const { engine: load = loadCedar, policies = {}, defaults = defaultPolicies } = this.#options
    const engine = await load()
    const schema = engine.preparseSchema(schemaName, policySchema)
    if (schema.type === 'failure') {
      const message = `This version of ${cedarPackage} can't read the schema of policies. Install version 4.13 or newer.`
      throw new HeedError('provider_not_installed', message, { details: { package: cedarPackage } })
    }
    const common = { ...defaults, ...operatorPolicies(engine, policies, defaults) }
    const problems = checkPolicies(engine, common)
    if (problems.length > 0) throw invalidPolicies(problems)
    const preparsed = engine.preparsePolicySet(this.#nameOf(0), { staticPolicies: common })
    if (preparsed.type === 'failure') throw rejectedByCedar(preparsed.errors)
    return { engine, common, commonRevision: revisionOf(common), commonReads: categoryReads(engine, common) }
  }

  /** Makes policies those that `decide()` asks, unless newer ones are. If that fails, those of before must not be asked either. */
  #use(ready: Ready, name: string, own: PolicySet, version: number): void {
    const known = this.#tenants.get(name)
    if (known && known.version >= version) return
    try {
      check(ready, own)
      const isCommon = Object.keys(own).length === 0
      const all = { ...ready.common, ...own }
      const preparsed = isCommon ? this.#nameOf(0) : this.#preparse(ready.engine, all, known?.preparsed)
      if (isCommon && known) this.#release(known)
      const revision = isCommon ? ready.commonRevision : revisionOf(all)
      const reads = uniteReads([ready.commonReads, categoryReads(ready.engine, own)])
      this.#tenants.set(name, { version, revision, preparsed, reads })
    } catch (error) {
      this.#tenants.delete(name)
      throw error
    }
  }

  /** Under the name that the tenant has, if it has one: the set of that name is replaced. */
  #preparse(engine: CedarEngine, policies: PolicySet, known: string | undefined): string {
    const name = (known === this.#nameOf(0) ? undefined : known) ?? this.#freeNames.pop() ?? this.#nameOf(++this.#lastName)
    const answer = engine.preparsePolicySet(name, { staticPolicies: policies })
    if (answer.type === 'success') return name
    if (name !== known) this.#freeNames.push(name)
    throw rejectedByCedar(answer.errors)
  }

  #release({ preparsed }: Tenant): void {
    if (preparsed !== this.#nameOf(0)) this.#freeNames.push(preparsed)
  }

  /** 0 is the set of tenants without policies of their own. */
  #nameOf(number: number): string {
    return `heed-${this.#instance}-${number}`
  }

  #ask(engine: CedarEngine, { revision, preparsed }: Tenant, question: CedarRequest): PolicyDecision {
    let answer: ReturnType<CedarEngine['statefulIsAuthorized']>
    try {
      const call = { ...question, preparsedSchemaName: schemaName, preparsedPolicySetId: preparsed, validateRequest: true }
      answer = engine.statefulIsAuthorized(call)
    } catch (error) {
      this.#logger.error('Cedar failed: the request was denied', { action: question.action.id, error: describe(error) })
      return denied(revision, 'engine_failed')
    }
    if (answer.type === 'failure') {
      const errors = answer.errors.map(({ message }) => message)
      this.#logger.error('Cedar rejected a request: it was denied', { action: question.action.id, errors })
      return denied(revision, 'engine_failed')
    }
    const { decision, diagnostics: { reason, errors } } = answer.response
    // Cedar leaves out a policy that fails, as if there were no such rule.
    if (errors.length > 0) {
      for (const { policyId, error } of errors) this.#logFailedPolicy(policyId, revision, error.message)
      return { ...denied(revision, 'policy_failed'), policyIds: errors.map(({ policyId }) => policyId).toSorted() }
    }
    return { allowed: decision === 'allow', policyIds: reason.toSorted(), revision }
  }

  #logFailedPolicy(policyId: string, revision: string, reason: string): void {
    const key = `${revision} ${policyId}`
    if (this.#logged.get(key)) return
    this.#logged.set(key, true)
    this.#logger.error('a policy failed: requests that it could concern are denied', { policyId, revision, reason })
  }
}

function isStore(store: unknown): boolean {
  const { getPolicies, savePolicies } = (store ?? {}) as Partial<PolicyStore>
  return typeof getPolicies === 'function' && typeof savePolicies === 'function'
}

function denied(revision: string, failure: PolicyFailure): PolicyDecision {
  return { allowed: false, policyIds: [], revision, failure }
}

/** Rejects policies that may not be added to those of all tenants. */
function check({ engine, common }: Ready, own: PolicySet): void {
  const ids = Object.keys(own)
  const taken = ids.find((id) => Object.hasOwn(common, id) || id.startsWith(defaultPrefix))
  if (taken !== undefined) throw idTaken(taken)
  if (ids.length + Object.keys(common).length > maxPolicies) throw refused('policies', `at most ${maxPolicies}, with those of all tenants`)
  const problems = checkPolicies(engine, own)
  if (problems.length > 0) throw invalidPolicies(problems)
}

function operatorPolicies(engine: CedarEngine, given: PolicySet | string, defaults: PolicySet): PolicySet {
  const read = typeof given === 'string' ? readPolicyText(engine, given) : { problems: [], policies: given }
  if (read.problems.length > 0) throw invalidPolicies(read.problems)
  const taken = Object.keys(read.policies).find((id) => Object.hasOwn(defaults, id) || id.startsWith(defaultPrefix))
  if (taken !== undefined) throw idTaken(taken)
  return read.policies
}

function idTaken(policyId: string): HeedError {
  const message = `The policy id '${policyId}' is taken by a policy of all tenants, or begins with '${defaultPrefix}'. Choose another id.`
  return new HeedError('invalid_policy', message, { details: { policyId } })
}

function checkSet(field: string, policies: unknown): asserts policies is PolicySet {
  checkObject(field, policies)
  for (const [id, text] of Object.entries(policies)) {
    checkName(`an id in ${field}`, id)
    checkText(`${field}.${id}`, text)
    if (id.length > 128) throw refused(`an id in ${field}`, 'at most 128 characters long')
    if (text.length > maxPolicyLength) throw refused(`${field}.${id}`, `at most ${maxPolicyLength} characters long`)
  }
}

function revisionOf(policies: PolicySet): string {
  return createHash('sha256').update(orderedJSON({ policies, schema: policySchema })).digest('hex').slice(0, 32)
}

function rejectedByCedar(errors: ReadonlyArray<{ message: string }>): HeedError {
  return new HeedError('invalid_policy', `Cedar rejected the policies: ${errors.map(({ message }) => message).join('; ')}.`)
}

import { createRequire } from 'node:module'
import { describe, expect, it, vi } from 'vitest'
import { isHeedError, type HeedError } from '../base/errors.ts'
import { silentLogger } from '../base/logger.ts'
import type { CedarEngine } from './engine.ts'
import {
  CedarPolicies, defaultPolicies, InMemoryPolicyStore, type CedarPoliciesOptions, type PolicyAction, type PolicyContext, type PolicyProblem, type PolicyRequest,
} from './index.ts'

/** The rule as operators know it. */
const forbidEmail = `forbid(
  principal,
  action == Policy::Action::"receive_signal",
  resource in Policy::Channel::"email"
);`

const cedar = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as CedarEngine

function newPolicies(options: CedarPoliciesOptions = {}): CedarPolicies {
  return new CedarPolicies({ logger: silentLogger, ...options })
}

interface Message {
  kind?: string
  id?: string
  verified?: boolean
  contactId?: string
  context?: PolicyContext
  action?: PolicyAction
  tenant?: string
}

function message({ kind = 'email', id = 'work', verified = true, contactId, context, action = 'receive_signal', tenant = 't' }: Message = {}): PolicyRequest {
  return {
    tenant, action,
    principal: { type: 'agent', id: 'assistant', resourceId: 'alice' },
    resource: { type: 'message_source', channel: { kind, id }, verified, ...(contactId === undefined ? {} : { contactId }) },
    ...(context ? { context } : {}),
  }
}

function readThread(id: string, resourceId: string, scopes: string[] = []): PolicyRequest {
  return { tenant: 't', action: 'read_thread', principal: { type: 'user', id: 'web', resources: ['alice'], scopes }, resource: { type: 'thread', id, resourceId } }
}

async function errorOf(work: Promise<unknown>): Promise<HeedError> {
  const error: unknown = await work.then(() => undefined, (reason: unknown) => reason)
  if (!isHeedError(error)) throw new Error('No HeedError was thrown.')
  return error
}

async function problemsOf(policies: CedarPolicies, text: string): Promise<PolicyProblem[]> {
  const error = await errorOf(policies.savePolicies('t', { rule: text }))
  expect(error.code).toBe('invalid_policy')
  return error.details?.problems as PolicyProblem[]
}

describe('rules about channels', () => {
  it('[V4.1] case 42: the rule about a kind of channel denies each channel of the kind, and no other', async () => {
    const policies = newPolicies()
    const { revision } = await policies.savePolicies('t', { forbid_email: forbidEmail })
    expect(policies.decide(message({ id: 'work' }))).toEqual({ allowed: false, policyIds: ['forbid_email'], revision })
    expect(policies.decide(message({ id: 'home/old' })).allowed).toBe(false)
    expect(policies.decide(message({ kind: 'sms', id: 'email' }))).toEqual({ allowed: true, policyIds: ['heed.receive_signal'], revision })
    expect(policies.decide(message({ kind: 'emails' })).allowed).toBe(true)
    expect(policies.decide(message({ action: 'receive_message' })).allowed, 'another action').toBe(true)
  })

  it('[V4.1] a rule about one channel denies that channel alone', async () => {
    const policies = newPolicies({ policies: { work: 'forbid(principal, action, resource in Policy::Channel::"email/work");' } })
    await policies.load('t')
    expect(policies.decide(message({ id: 'work' })).policyIds).toEqual(['work'])
    expect(policies.decide(message({ id: 'home' })).allowed).toBe(true)
  })

  it('rules about categories, verification and taint', async () => {
    const rules = {
      codes: `forbid(principal, action == Policy::Action::"receive_signal", resource)
        when { context.categories.contains("verification_code") && !resource.verified };`,
      taint: 'forbid(principal, action == Policy::Action::"approve_tool", resource) unless { context.tainted_by.isEmpty() };',
    }
    const policies = newPolicies({ policies: rules })
    await policies.load('t')
    const context = { categories: ['auth', 'verification_code'] }
    expect(policies.decide(message({ verified: false, context })).policyIds).toEqual(['codes'])
    expect(policies.decide(message({ verified: true, context })).allowed).toBe(true)
    expect(policies.decide(message({ verified: false })).allowed).toBe(true)
    const tool: PolicyRequest = {
      tenant: 't', action: 'approve_tool', principal: { type: 'user', id: 'alice' },
      resource: { type: 'tool', name: 'send_money', agentId: 'bank', resourceId: 'alice' },
    }
    expect(policies.decide(tool).allowed).toBe(true)
    expect(policies.decide({ ...tool, context: { taintedBy: ['sms', 'sms/main'] } }).policyIds).toEqual(['taint'])
  })

  it('[V4.4] an unverified sender is no contact, and one without a contact has no sender', async () => {
    const permit = 'permit(principal, action == Policy::Action::"receive_message", resource) when { resource has sender && resource.sender == Policy::Contact::"mum" };'
    const policies = newPolicies({ defaults: {}, policies: { mum: permit } })
    await policies.load('t')
    const asked = (of: Message) => policies.decide(message({ action: 'receive_message', ...of }))
    expect(asked({ contactId: 'mum' }).policyIds).toEqual(['mum'])
    expect(asked({ contactId: 'mum', verified: false }).allowed).toBe(false)
    expect(asked({ contactId: 'dad' }).allowed).toBe(false)
    expect(asked({}).allowed).toBe(false)
    expect(asked({}).failure, 'a judgement').toBeUndefined()
  })
})

describe('rules about the principals of a server', () => {
  it('[V4.5] scopes and resources are attributes of a user, and a thread is in its owner', async () => {
    const rules = {
      scoped: 'forbid(principal is Policy::User, action == Policy::Action::"read_thread", resource) unless { principal.scopes.contains("threads:read") };',
      foreign: `forbid(principal is Policy::User, action == Policy::Action::"read_thread", resource)
        unless { principal.all_resources || resource in principal.resources };`,
      bob: 'forbid(principal, action == Policy::Action::"read_thread", resource in Policy::User::"bob");',
    }
    const policies = newPolicies({ policies: rules })
    await policies.load('t')
    expect(policies.decide(readThread('one', 'alice', ['threads:read'])).allowed).toBe(true)
    expect(policies.decide(readThread('one', 'alice')).policyIds).toEqual(['scoped'])
    expect(policies.decide(readThread('one', 'bob', ['threads:read'])).policyIds).toEqual(['bob', 'foreign'])
    const operator = { type: 'user', id: 'admin', resources: '*', operator: true, scopes: ['threads:read'] } as const
    const list: PolicyRequest = { tenant: 't', action: 'read_thread', principal: operator, resource: { type: 'user', id: 'bob' } }
    expect(policies.decide(list).policyIds, 'all threads of bob').toEqual(['bob'])
    expect(policies.decide({ ...list, resource: { type: 'user', id: 'carol' } }).allowed).toBe(true)
  })

  it('[V4.5] without policies, every action is permitted by a policy; without defaults, none is', async () => {
    const requests: PolicyRequest[] = [
      message(), message({ action: 'receive_message' }), readThread('one', 'alice'), { ...readThread('one', 'alice'), action: 'send_signal' },
      { ...readThread('one', 'alice'), action: 'approve_tool', resource: { type: 'tool', name: 'x', agentId: 'a', resourceId: 'alice' } },
    ]
    const [open, shut] = [newPolicies(), newPolicies({ defaults: {} })]
    await Promise.all([open.load('t'), shut.load('t')])
    expect(requests.map((request) => open.decide(request).policyIds)).toEqual(requests.map(({ action }) => [`heed.${action}`]))
    expect(Object.keys(defaultPolicies).toSorted()).toEqual(requests.map(({ action }) => `heed.${action}`).toSorted())
    expect(requests.map((request) => shut.decide(request))).toEqual(
      requests.map(() => ({ allowed: false, policyIds: [], revision: expect.any(String) as string })),
    )
  })
})

describe('saving', () => {
  it.each([
    ['an action', 'forbid(principal, action == Policy::Action::"recieve_signal", resource);', 1, 29, 'Policy::Action::"receive_signal"'],
    ['an entity type', 'forbid(\n  principal,\n  action,\n  resource in Policy::Chanel::"email"\n);', 4, 15, 'Policy::Channel'],
    ['an attribute', '// é\nforbid(principal, action == Policy::Action::"receive_signal", resource) when { resource.verfied };', 2, 80, '`verified`'],
  ])('[V4.2] case 42: a typo in %s is refused with its place and a suggestion, and nothing is saved', async (_, text, line, column, suggestion) => {
    const store = new InMemoryPolicyStore()
    const policies = newPolicies({ store })
    await policies.savePolicies('t', { forbid_email: forbidEmail })
    const error = await errorOf(policies.savePolicies('t', { fine: 'permit(principal, action, resource);', rule: text }))
    expect(error).toMatchObject({ code: 'invalid_policy', details: { policyId: 'rule', problems: [{ policyId: 'rule', line, column }] } })
    expect(error.message).toContain(`'rule' is invalid at ${line}:${column}: `)
    expect(error.message).toContain(suggestion)
    expect(await store.getPolicies('t')).toEqual({ policies: { forbid_email: forbidEmail }, version: 1 })
    expect(policies.decide(message()).policyIds).toEqual(['forbid_email'])
  })

  it('[V4.2] case 42, F2: a rule that can never apply is refused, and so is one whose names look like others', async () => {
    const policies = newPolicies()
    const never = 'forbid(principal, action == Policy::Action::"receive_signal", resource == Policy::Channel::"email");'
    expect((await problemsOf(policies, never))[0]).toMatchObject({ message: expect.stringContaining('applicable action') as string, help: 'try replacing `==` with `in` in the resource clause' })
    expect((await problemsOf(policies, forbidEmail.replace('"email"', '"em\u0430il"')))[0]?.message).toContain('mixed scripts')
    expect((await problemsOf(policies, forbidEmail.replace('"email"', '"e\u202Email"')))[0]?.message).toContain('BIDI')
  })

  it('[V4.2] a text that does not parse, holds two policies, or is a template is refused with its place', async () => {
    const policies = newPolicies()
    expect(await problemsOf(policies, 'permit(principal,\n  action resource);')).toMatchObject([{ line: 2, column: 10, message: 'unexpected token `resource`' }])
    expect(await problemsOf(policies, 'permit(principal, action, resource);\npermit(principal, action, resource);')).toMatchObject([{ line: 2, column: 1 }])
    expect(await problemsOf(policies, 'permit(principal == ?principal, action, resource);')).toMatchObject([{ line: 1, column: 21 }])
    expect(await problemsOf(policies, ' ')).toMatchObject([{ message: 'unexpected end of input' }])
  })

  it('[V4.2] an id of all tenants, a reserved id, an empty text and too much text are refused by name', async () => {
    const policies = newPolicies({ policies: { common: forbidEmail } })
    for (const id of ['common', 'heed.receive_signal', 'heed.mine'])
      expect(await errorOf(policies.savePolicies('t', { [id]: forbidEmail }))).toMatchObject({ code: 'invalid_policy', details: { policyId: id } })
    expect((await errorOf(policies.savePolicies('t', { rule: '' }))).message).toContain('policies.rule must be')
    expect((await errorOf(policies.savePolicies('t', { rule: `${forbidEmail}// ${'x'.repeat(20_000)}` }))).message).toContain('policies.rule must be')
    const many = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`rule${index}`, forbidEmail]))
    expect((await errorOf(policies.savePolicies('t', many))).message).toContain('at most 500')
    expect(() => newPolicies({ polices: {} } as CedarPoliciesOptions)).toThrow("CedarPolicies has no 'polices'")
  })

  it('[V4.2] the policies of all tenants are checked before the first decision', async () => {
    const policies = newPolicies({ policies: 'permit(principal, action, resource);\n@id("typo") forbid(principal, action == Policy::Action::"x", resource);' })
    expect(await errorOf(policies.load('t'))).toMatchObject({ code: 'invalid_policy', details: { problems: [{ line: 2, column: 41 }] } })
    expect(policies.decide(message())).toMatchObject({ allowed: false, failure: 'not_loaded' })
  })

  it('takes the policies of all tenants from one text, with ids from annotations', async () => {
    const rest = Array.from({ length: 11 }, (_, index) => `forbid(principal, action, resource in Policy::Channel::"kind${index}");`)
    const policies = newPolicies({ policies: `// é\n@id("mail") ${forbidEmail}\n${rest.join('\n')}` })
    await policies.load('t')
    expect(policies.decide(message()).policyIds).toEqual(['mail'])
    expect(policies.decide(message({ kind: 'kind9' })).policyIds).toEqual(['policy10'])
    const twice = newPolicies({ policies: `@id("a") ${forbidEmail}\n@id("a") ${forbidEmail}` })
    expect((await errorOf(twice.load('t'))).message).toContain('two policies have the id `a`')
  })

  it('[V4.6] a save replaces the policies of one tenant, also for requests that were decided before', async () => {
    const policies = newPolicies()
    await policies.savePolicies('t', {})
    await policies.load('other')
    const before = policies.decide(message())
    const saved = await policies.savePolicies('t', { forbid_email: forbidEmail })
    expect([before.allowed, policies.decide(message()).allowed, policies.decide(message({ tenant: 'other' })).allowed]).toEqual([true, false, true])
    expect(saved.revision).not.toBe(before.revision)
    const again = await policies.savePolicies('t', {})
    expect(again).toMatchObject({ version: 3, revision: before.revision })
    expect(policies.decide(message()).allowed).toBe(true)
  })

  it('[V4.6] authorize() knows what another process saved; decide() after the next load', async () => {
    const store = new InMemoryPolicyStore()
    const [one, other] = [newPolicies({ store }), newPolicies({ store })]
    expect((await other.authorize(message())).allowed).toBe(true)
    const { revision } = await one.savePolicies('t', { forbid_email: forbidEmail })
    expect(await other.authorize(message())).toEqual({ allowed: false, policyIds: ['forbid_email'], revision })
    expect(await other.getPolicies('t')).toEqual({ policies: { forbid_email: forbidEmail }, version: 1, revision })
  })

  it('[V4.6] a save that expects another version is rejected', async () => {
    const policies = newPolicies()
    await policies.savePolicies('t', {}, { ifVersion: 0 })
    expect(await errorOf(policies.savePolicies('t', { forbid_email: forbidEmail }, { ifVersion: 0 }))).toMatchObject({ code: 'policy_conflict', details: { version: 1 } })
    expect(policies.decide(message()).allowed).toBe(true)
  })
})

describe('failures deny', () => {
  it('[V4.3] case 42, F16: a rule that fails denies, and is named', async () => {
    const overflow = 'forbid(principal, action == Policy::Action::"receive_signal", resource) when { 9223372036854775807 + 1 == 0 };'
    const logger = { ...silentLogger, error: vi.fn() }
    const policies = newPolicies({ policies: { overflow }, logger })
    await policies.load('t')
    const expected = { allowed: false, policyIds: ['overflow'], failure: 'policy_failed' }
    expect(policies.decide(message({ kind: 'sms' }))).toMatchObject(expected)
    expect(policies.decide(message({ kind: 'chat' }))).toMatchObject(expected)
    expect(logger.error.mock.calls, 'logged once').toHaveLength(1)
    expect(policies.decide(message({ action: 'receive_message' })).allowed, 'not of its action').toBe(true)
  })

  it.each([
    ['a channel', { resource: { type: 'message_source', verified: true } }],
    ['a kind', { resource: { type: 'message_source', channel: { id: 'work' }, verified: true } }],
    ['a valid kind', { resource: { type: 'message_source', channel: { kind: 'x/email', id: 'work' }, verified: true } }],
    ['an instance', { resource: { type: 'message_source', channel: { kind: 'sms', id: '' }, verified: true } }],
    ['verification', { resource: { type: 'message_source', channel: { kind: 'sms', id: 'main' } } }],
    ['an owner of the agent', { principal: { type: 'agent', id: 'assistant' } }],
    ['a principal', { principal: undefined }],
    ['a resource', { resource: null }],
    ['a known action', { action: 'receive' }],
    ['a list of categories', { context: { categories: 'auth' } }],
    ['an owner of the thread', { action: 'read_thread', resource: { type: 'thread', id: 'one' } }],
    ['an agent of the tool', { action: 'approve_tool', resource: { type: 'tool', name: 'x', resourceId: 'alice' } }],
  ])('[V4.3] F16: a request without %s is denied, since a rule could depend on it', async (_, fields) => {
    const policies = newPolicies({ policies: { forbid_email: forbidEmail } })
    await policies.load('t')
    const request = { ...message({ kind: 'sms' }), ...fields } as PolicyRequest
    expect(policies.decide(request)).toMatchObject({ allowed: false, failure: 'invalid_request' })
  })

  it.each([
    ['of the context', { context: { tainted_by: ['sms'] } }],
    ['of the request', { contxt: { categories: ['auth'] } }],
    ['of an agent', { principal: { type: 'agent', id: 'assistant', resourceId: 'alice', scopes: ['x'] } }],
    ['of a user', { ...readThread('one', 'alice'), principal: { type: 'user', id: 'web', scope: ['x'] } }],
    ['of a message source', { resource: { type: 'message_source', channel: { kind: 'sms', id: 'main' }, verified: true, contact: 'mum' } }],
    ['of a channel', { resource: { type: 'message_source', channel: { kind: 'sms', id: 'main', instance: 'x' }, verified: true } }],
    ['of a thread', { ...readThread('one', 'alice'), resource: { type: 'thread', id: 'one', resourceId: 'alice', owner: 'alice' } }],
    ['of a user as resource', { ...readThread('one', 'alice'), resource: { type: 'user', id: 'alice', resourceId: 'alice' } }],
    ['of a tool', { action: 'approve_tool', resource: { type: 'tool', name: 'x', agentId: 'a', resourceId: 'alice', agent: 'a' } }],
  ])('[V4.3] a request with a field %s that does not exist is denied: a misspelt one would count as absent', async (_, fields) => {
    const policies = newPolicies()
    await policies.load('t')
    expect(policies.decide({ ...message({ kind: 'sms' }), ...fields } as PolicyRequest)).toMatchObject({ allowed: false, failure: 'invalid_request' })
  })

  it('[V4.3] a request that the schema does not allow is denied', async () => {
    const policies = newPolicies()
    await policies.load('t')
    expect(policies.decide({ ...message(), action: 'read_thread' })).toMatchObject({ allowed: false, failure: 'engine_failed' })
  })

  it('[V4.3] each request holds the whole hierarchy of its entities', async () => {
    const statefulIsAuthorized = vi.fn(cedar.statefulIsAuthorized)
    const policies = newPolicies({ engine: () => Promise.resolve({ ...cedar, statefulIsAuthorized }) })
    await policies.load('t')
    policies.decide(message({ contactId: 'mum' }))
    policies.decide(readThread('one', 'alice'))
    policies.decide({ ...readThread('one', 'alice'), action: 'approve_tool', resource: { type: 'tool', name: 'x', agentId: 'a', resourceId: 'alice' } })
    expect(statefulIsAuthorized).toHaveBeenCalledTimes(3)
    for (const [{ resource, principal, entities, validateRequest }] of statefulIsAuthorized.mock.calls) {
      const ids = entities.map(({ uid }) => `${uid.type} ${uid.id}`)
      const referred = [principal, resource, ...entities.flatMap(({ parents }) => parents)].map(({ type, id }) => `${type} ${id}`)
      expect(ids).toEqual(expect.arrayContaining(referred))
      expect(entities.find(({ uid }) => uid.type === resource.type && uid.id === resource.id)?.parents).toHaveLength(1)
      expect(validateRequest).toBe(true)
    }
  })

  it('[V4.3] an engine that cannot be loaded, or that fails, denies; the next load tries again', async () => {
    let isInstalled = false
    const engine = () => (isInstalled ? Promise.resolve(cedar) : Promise.reject(new Error('no such package')))
    const policies = newPolicies({ engine })
    await expect(policies.load('t')).rejects.toThrow('no such package')
    expect(policies.decide(message())).toEqual({ allowed: false, policyIds: [], revision: '', failure: 'not_loaded' })
    expect(await policies.authorize(message())).toMatchObject({ allowed: false, failure: 'not_loaded' })
    isInstalled = true
    expect((await policies.authorize(message())).allowed).toBe(true)

    const broken = newPolicies({ engine: () => Promise.resolve({ ...cedar, statefulIsAuthorized: () => { throw new WebAssembly.RuntimeError('unreachable') } }) })
    expect(await broken.authorize(message())).toMatchObject({ allowed: false, failure: 'engine_failed' })
  })

  it('[V4.3] a tenant is denied when its stored policies cannot be read or are no longer valid, and not before', async () => {
    const store = new InMemoryPolicyStore()
    const policies = newPolicies({ store })
    expect(policies.decide(message())).toMatchObject({ allowed: false, failure: 'not_loaded' })
    expect((await policies.authorize(message())).allowed).toBe(true)
    const reading = vi.spyOn(store, 'getPolicies').mockRejectedValueOnce(new Error('disk'))
    expect(await policies.authorize(message())).toMatchObject({ allowed: false, failure: 'not_loaded' })
    expect(policies.decide(message())).toMatchObject({ allowed: false, failure: 'not_loaded' })
    reading.mockRestore()
    expect((await policies.authorize(message())).allowed).toBe(true)
    await store.savePolicies('t', { old: 'forbid(principal, action == Policy::Action::"gone", resource);' })
    expect(await policies.authorize(message())).toMatchObject({ allowed: false, failure: 'not_loaded' })
    expect(policies.decide(message())).toMatchObject({ allowed: false, failure: 'not_loaded' })
  })

  it('[V4.3] a set that Cedar does not take is not replaced by the one before it', async () => {
    let refuses = false
    const preparsePolicySet: CedarEngine['preparsePolicySet'] = (id, set) =>
      refuses ? { type: 'failure', errors: [{ message: 'no memory' }] } : cedar.preparsePolicySet(id, set)
    const policies = newPolicies({ engine: () => Promise.resolve({ ...cedar, preparsePolicySet }) })
    await policies.savePolicies('t', { sms: forbidEmail.replace('email', 'sms') })
    refuses = true
    expect((await errorOf(policies.savePolicies('t', { forbid_email: forbidEmail }))).message).toContain('no memory')
    expect(policies.decide(message())).toMatchObject({ allowed: false, failure: 'not_loaded' })
    refuses = false
    expect((await policies.authorize(message())).policyIds).toEqual(['forbid_email'])
  })
})

describe('memory', () => {
  it('[V4.7] preparsed sets are at most as many as tenants are kept, and a tenant that leaves is denied until it is loaded', async () => {
    const names = new Set<string>()
    const preparsePolicySet: CedarEngine['preparsePolicySet'] = (id, set) => {
      names.add(id)
      return cedar.preparsePolicySet(id, set)
    }
    const policies = newPolicies({ maxTenants: 3, engine: () => Promise.resolve({ ...cedar, preparsePolicySet }) })
    for (let round = 0; round < 3; round++) {
      for (let index = 0; index < 10; index++) {
        const tenant = `tenant-${index}`
        await policies.savePolicies(tenant, index % 2 === round % 2 ? {} : { [`rule-${index}`]: forbidEmail })
        expect(policies.decide(message({ tenant })).policyIds).toEqual([index % 2 === round % 2 ? 'heed.receive_signal' : `rule-${index}`])
      }
    }
    expect(names.size).toBeLessThanOrEqual(5)
    expect(policies.decide(message({ tenant: 'tenant-1' }))).toMatchObject({ allowed: false, failure: 'not_loaded' })
    expect((await policies.authorize(message({ tenant: 'tenant-1' }))).policyIds).toEqual(['rule-1'])
  })

  it('[V4.7] the same question is asked once, whatever the order of its sets; remembered decisions are bounded', async () => {
    const statefulIsAuthorized = vi.fn(cedar.statefulIsAuthorized)
    const policies = newPolicies({ maxDecisions: 2, engine: () => Promise.resolve({ ...cedar, statefulIsAuthorized }) })
    await policies.load('t')
    const asked = (of: Message) => {
      statefulIsAuthorized.mockClear()
      policies.decide(message(of))
      return statefulIsAuthorized.mock.calls.length
    }
    expect(asked({ context: { categories: ['a', 'b'] } })).toBe(1)
    expect(asked({ context: { categories: ['b', 'a', 'b'] } })).toBe(0)
    expect(asked({ contactId: 'mum' })).toBe(1)
    expect(asked({ contactId: 'dad' })).toBe(1)
    expect(asked({ contactId: 'dad' })).toBe(0)
    expect(asked({ context: { categories: ['a', 'b'] } }), 'forgotten').toBe(1)
  })
})

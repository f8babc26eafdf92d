import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import type { CedarEngine, CedarPoliciesOptions, PolicyRequest } from '../../../src/policy/index.ts'
import { rejects, type Probe } from '../probe.ts'
import { heed, policy } from '../walked.ts'

const { silentLogger } = heed
const { CedarPolicies, FilePolicyStore, InMemoryPolicyStore } = policy

const cedar = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as CedarEngine
const made = (options: CedarPoliciesOptions = {}) => new CedarPolicies({ logger: silentLogger, ...options })
const forbid = (action: string, when: string) => `forbid(principal, action == Policy::Action::"${action}", resource) when { ${when} };`

const message: PolicyRequest = {
  tenant: 'alice', action: 'receive_signal', principal: { type: 'agent', id: 'guide', resourceId: 'alice' },
  resource: { type: 'message_source', channel: { kind: 'sms', id: 'main' }, verified: true, contactId: 'mum' },
}
const user = { type: 'user', id: 'web', resources: ['alice'], operator: false, scopes: ['read'] } as const
const ofTool: PolicyRequest = {
  tenant: 'alice', action: 'approve_tool', principal: user, resource: { type: 'tool', name: 'pay', agentId: 'guide', resourceId: 'alice' },
}
const ofThread: PolicyRequest = { tenant: 'alice', action: 'read_thread', principal: user, resource: { type: 'thread', id: 'one', resourceId: 'alice' } }

export const policies: Probe[] = [
  {
    title: 'the options of policies',
    async run() {
      const store = new InMemoryPolicyStore()
      await store.savePolicies('alice', { own: forbid('receive_signal', 'true') })
      expect((await made({ store }).authorize(message)).policyIds).toEqual(['own'])
      expect((await made({ policies: { common: forbid('receive_signal', 'true') } }).authorize(message)).policyIds).toEqual(['common'])
      expect((await made({ policies: `@id("text") ${forbid('receive_signal', 'true')}` }).authorize(message)).policyIds).toEqual(['text'])
      expect(await made({ defaults: {} }).authorize(message)).toMatchObject({ allowed: false, policyIds: [] })
      const [asked, error] = [vi.fn(cedar.statefulIsAuthorized), vi.fn()]
      const counted = made({ engine: () => Promise.resolve({ ...cedar, statefulIsAuthorized: asked }), maxDecisions: 1, maxTenants: 1 })
      for (const contactId of ['mum', 'mum', 'dad', 'mum']) await counted.authorize({ ...message, resource: { ...message.resource, contactId } as never })
      expect(asked).toHaveBeenCalledTimes(3)
      await counted.load('bob')
      expect(counted.decide(message)).toMatchObject({ failure: 'not_loaded' })
      await made({ engine: () => Promise.reject(new Error('absent')), logger: { ...silentLogger, error } }).authorize(message)
      expect(error).toHaveBeenCalledOnce()
      for (const [option, value] of Object.entries({ policies: 7, defaults: [], engine: {}, maxTenants: 0, maxDecisions: -1, store: {} }))
        await rejects(() => made({ [option]: value }), option)
    },
  },
  ...(['authorize', 'decide'] as const).map((method): Probe => ({
    title: method === 'authorize' ? 'the fields of a request to policies' : 'CedarPolicies.decide: the fields of a request',
    async run() {
      const ask = async (policies: InstanceType<typeof CedarPolicies>, request: PolicyRequest) => {
        if (method === 'decide') await policies.load(['alice', 'bob'].includes(request.tenant) ? request.tenant : 'alice')
        return policies[method](request)
      }
      const rules: Record<string, [PolicyRequest, string, PolicyRequest]> = {
        categories: [message, 'context.categories.contains("auth")', { ...message, context: { categories: ['auth'] } }],
        taint: [ofTool, '!context.tainted_by.isEmpty()', { ...ofTool, context: { taintedBy: ['sms'] } }],
        agent: [message, 'principal != Policy::Agent::"guide" || principal in Policy::User::"bob"', { ...message, principal: { type: 'agent', id: 'guide', resourceId: 'bob' } }],
        kind: [message, 'resource in Policy::Channel::"email"', { ...message, resource: { type: 'message_source', channel: { kind: 'email', id: 'x' }, verified: true } }],
        channel: [message, 'resource in Policy::Channel::"sms/second"', { ...message, resource: { type: 'message_source', channel: { kind: 'sms', id: 'second' }, verified: true } }],
        verified: [message, '!resource.verified', { ...message, resource: { type: 'message_source', channel: { kind: 'sms', id: 'main' }, verified: false } }],
        contact: [message, 'resource has sender && resource.sender == Policy::Contact::"dad"', { ...message, resource: { ...message.resource, contactId: 'dad' } as never }],
        name: [ofTool, 'resource == Policy::Tool::"send"', { ...ofTool, resource: { type: 'tool', name: 'send', agentId: 'guide', resourceId: 'alice' } }],
        toolAgent: [ofTool, 'resource in Policy::Agent::"other"', { ...ofTool, resource: { type: 'tool', name: 'pay', agentId: 'other', resourceId: 'alice' } }],
        owner: [ofThread, 'resource in Policy::User::"bob"', { ...ofThread, resource: { type: 'thread', id: 'one', resourceId: 'bob' } }],
        thread: [ofThread, 'resource == Policy::Thread::"two"', { ...ofThread, resource: { type: 'thread', id: 'two', resourceId: 'alice' } }],
        user: [ofThread, 'resource == Policy::User::"carol"', { ...ofThread, resource: { type: 'user', id: 'carol' } }],
        scopes: [ofThread, 'principal is Policy::User && !principal.scopes.contains("read")', { ...ofThread, principal: { ...user, scopes: [] } }],
        resources: [ofThread, 'principal is Policy::User && principal.resources.isEmpty()', { ...ofThread, principal: { ...user, resources: [] } }],
        operator: [ofThread, 'principal is Policy::User && principal.operator', { ...ofThread, principal: { ...user, operator: true } }],
      }
      for (const [name, [other, when, meant]] of Object.entries(rules)) {
        const rule = made({ policies: { [name]: forbid(meant.action, when) } })
        expect([name, (await ask(rule, other)).allowed, (await ask(rule, meant)).policyIds]).toEqual([name, true, [name]])
      }
      const tenants = made()
      await tenants.savePolicies('bob', { closed: forbid('read_thread', 'true') })
      expect([(await ask(tenants, ofThread)).allowed, (await ask(tenants, { ...ofThread, tenant: 'bob' })).allowed]).toEqual([true, false])
      expect(await ask(tenants, { ...ofThread, nonsense: 1 } as never)).toMatchObject({ allowed: false, failure: 'invalid_request' })
    },
  })),
  {
    title: 'saving policies, and a folder of them',
    async run() {
      const folder = mkdtempSync(join(tmpdir(), 'heed-policies-'))
      onTestFinished(() => rmSync(folder, { recursive: true }))
      const store = new FilePolicyStore({ folder })
      expect(await store.savePolicies('alice', {}, { ifVersion: 0 })).toBe(1)
      expect(readdirSync(folder)).toHaveLength(1)
      await expect(store.savePolicies('alice', {}, { ifVersion: 0 })).rejects.toMatchObject({ code: 'policy_conflict' })
      await expect(made({ store }).savePolicies('alice', {}, { ifVersion: 2 })).rejects.toMatchObject({ code: 'policy_conflict' })
      await rejects(() => made().savePolicies('alice', {}, { ifVersion: '1' as never }), 'ifVersion')
      await rejects(() => new FilePolicyStore({ folder: '' }), 'folder')
    },
  },
]

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { silentLogger } from '../base/logger.ts'
import { CedarPolicies, FilePolicyStore, InMemoryPolicyStore, type PolicyStore } from './index.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'heed-policies-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const stores: Array<[name: string, open: () => PolicyStore]> = [
  ['InMemoryPolicyStore', () => new InMemoryPolicyStore()],
  ['FilePolicyStore', () => new FilePolicyStore({ folder })],
]

it.each(stores)('[V4.6] %s: versions grow, also when saves are concurrent, and a save that expects another version is rejected', async (_, open) => {
  const store = open()
  expect(await store.getPolicies('t')).toBeUndefined()
  const versions = await Promise.all(Array.from({ length: 8 }, (_, index) => store.savePolicies('t', { rule: `${index}` })))
  expect(versions.toSorted((one, other) => one - other)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  const newest = versions.indexOf(8)
  expect(await store.getPolicies('t')).toEqual({ policies: { rule: `${newest}` }, version: 8 })
  const raced = await Promise.allSettled(['a', 'b'].map((id) => store.savePolicies('t', { [id]: '1' }, { ifVersion: 8 })))
  expect(raced.filter(({ status }) => status === 'fulfilled')).toEqual([{ status: 'fulfilled', value: 9 }])
  expect(raced.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'policy_conflict' } })
  expect(await store.getPolicies('../t')).toBeUndefined()
})

it('[V4.6] a file store has its policies in the next process, keeps a few earlier versions, and leaves no drafts', async () => {
  const store = new FilePolicyStore({ folder })
  for (let index = 0; index < 15; index++) await store.savePolicies('t/../ü', { rule: `${index}` })
  const reopened = new FilePolicyStore({ folder })
  expect(await reopened.getPolicies('t/../ü')).toEqual({ policies: { rule: '14' }, version: 15 })
  const [name = ''] = readdirSync(folder)
  expect(readdirSync(join(folder, name))).toHaveLength(11)
  expect(() => new FilePolicyStore({ folder: '' })).toThrow('folder must be')
})

it('[V4.3] a file that is damaged denies', async () => {
  const store = new FilePolicyStore({ folder })
  const policies = new CedarPolicies({ store, logger: silentLogger })
  await policies.savePolicies('t', {})
  const [name = ''] = readdirSync(folder)
  writeFileSync(join(folder, name, '2.json'), '{"tenant":"other","policies":{}}')
  await expect(policies.load('t')).rejects.toMatchObject({ code: 'store_corrupt' })
  const request = {
    tenant: 't', action: 'receive_signal' as const, principal: { type: 'agent' as const, id: 'a', resourceId: 'r' },
    resource: { type: 'message_source' as const, channel: { kind: 'sms', id: 'main' }, verified: true },
  }
  expect(policies.decide(request)).toMatchObject({ allowed: false, failure: 'not_loaded' })
})

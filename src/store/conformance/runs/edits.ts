import assert from 'node:assert/strict'
import type { AgentOverrides, NewRelease, NewVersion, PromptBlock } from '../../../editor/contract.ts'
import type { Send, ThreadStore, Windows } from '../../contract/threads.ts'
import { acceptOne, alive, commit, finish, gone, rejectsWith, row, send, wide, windows, type Begun, type StoreCase } from '../fixture.ts'

const agentId = 'agent-1'
const of = { kind: 'agent', id: agentId } as const
const now = 1_700_000_000_000
const edited: Windows = Object.assign(windows(wide), { edited: new Set([agentId]) })

const draft = (base: number, overrides: AgentOverrides, more: Partial<NewVersion> = {}): NewVersion => (
  { ...of, base, contents: overrides, by: 'ann', now, ...more }
)
const release = (expected: number, version: number, more: Partial<NewRelease> = {}): NewRelease => (
  { ...of, expected, version, by: 'ann', now, ...more }
)

const textOf = (contents: AgentOverrides | PromptBlock) => ('instructions' in contents ? contents.instructions : undefined)

/** Versions 1 to `count` of the agent. */
async function versions(store: ThreadStore, count: number): Promise<void> {
  for (let base = 0; base < count; base += 1) await store.saveVersion(draft(base, { instructions: `Version ${base + 1}.` }))
}

async function begun(store: ThreadStore, id: string, more: Partial<Send> = {}, read: Windows = edited): Promise<Begun> {
  await alive(store, 'p1')
  const { fence } = await acceptOne(store, send(id, { claim: { owner: 'p1' }, ...more }))
  assert.ok(fence)
  const run = await store.beginRun(fence, read)
  assert.ok(run)
  return { ...run, fence }
}

/** What a run gets that begins now and finishes. */
async function editOfRun(store: ThreadStore, id: string, more: Partial<Send> = {}, read?: Windows): Promise<unknown> {
  const run = await begun(store, id, more, read)
  await commit(store, run, finish)
  return run.run.edit
}

/** Versions of agents: what is stored of them, and what runs get. */
export const editCases: StoreCase[] = [
  {
    name: '[O1.1] [O1.3] a draft needs the latest version as its base, and the same contents make no version',
    async run({ store: open }) {
      const edits = await open()
      const first = await edits.saveVersion(draft(0, { instructions: 'One.' }, { why: 'first' }))
      assert.deepEqual(first, {
        created: true,
        version: { ...of, version: 1, base: 0, contents: { instructions: 'One.' }, by: 'ann', why: 'first', createdAt: now },
      })
      await assert.rejects(edits.saveVersion(draft(0, { instructions: 'Other.' }, { by: 'bob' })), {
        code: 'edit_conflict', details: { agentId, kind: 'version', expected: 0, latest: 1, by: 'ann', at: now, why: 'first' },
      })
      await rejectsWith('edit_conflict', edits.saveVersion(draft(2, { instructions: 'Ahead.' })))
      assert.deepEqual(await edits.saveVersion(draft(1, { instructions: 'One.' }, { by: 'bob' })), { ...first, created: false })
      const second = await edits.saveVersion(draft(1, { tools: { look: false } }))
      assert.deepEqual([second.version.version, second.version.base], [2, 1])
      assert.equal((await edits.saveVersion(draft(0, { instructions: 'x' }, { id: 'agent-2' }))).version.version, 1)
      const { versions: all, more } = await edits.listVersions({ ...of, limit: 9 })
      assert.deepEqual([all.map(({ version }) => version), more], [[2, 1], false])
    },
  },
  {
    name: '[O1.4] only a release of versions that exist changes what runs get, and needs the newest as expected',
    async run({ store: open }) {
      const store = await open()
      await versions(store, 2)
      assert.deepEqual((await store.listReleases({ ...of, limit: 1 })).releases, [])
      assert.equal(await editOfRun(store, 'a'), undefined)
      await rejectsWith('unknown_version', store.publishVersion(release(0, 3)))
      await rejectsWith('unknown_version', store.publishVersion(release(0, 1, { rules: [{ version: 9, percent: 50 }] })))
      const first = await store.publishVersion(release(0, 1, { why: 'kinder' }))
      assert.deepEqual(first, { ...of, release: 1, version: 1, by: 'ann', why: 'kinder', createdAt: now })
      await assert.rejects(store.publishVersion(release(0, 2, { by: 'bob' })), {
        code: 'edit_conflict', details: { agentId, kind: 'release', expected: 0, latest: 1, by: 'ann', at: now, why: 'kinder' },
      })
      assert.deepEqual((await store.listReleases({ ...of, limit: 9 })).releases, [first])
      assert.deepEqual(await editOfRun(store, 'b'), { version: 1, release: 1 })
      await store.publishVersion(release(1, 0))
      assert.deepEqual(await editOfRun(store, 'c'), { version: 0, release: 2 })
    },
  },
  {
    name: '[O1.5] a rollback restores the release before, again and again up to code, or the one that is named; nothing is removed',
    async run({ store: open }) {
      const edits = await open()
      await rejectsWith('unknown_version', edits.rollBackVersion({ ...of, expected: 0, by: 'ann', now }))
      await versions(edits, 2)
      const rules = [{ version: 2, resources: ['resource-1'] }]
      await edits.publishVersion(release(0, 1, { rules }))
      await edits.publishVersion(release(1, 2))
      const back = await edits.rollBackVersion({ ...of, expected: 2, by: 'bob', why: 'worse', now })
      assert.deepEqual(back, { ...of, release: 3, version: 1, rules, restores: 1, by: 'bob', why: 'worse', createdAt: now })
      await rejectsWith('edit_conflict', edits.rollBackVersion({ ...of, expected: 2, by: 'ann', now }))
      const code = await edits.rollBackVersion({ ...of, expected: 3, by: 'bob', now })
      assert.deepEqual([code.release, code.version, code.rules, code.restores], [4, 0, undefined, 0])
      await rejectsWith('unknown_version', edits.rollBackVersion({ ...of, expected: 4, by: 'bob', now }))
      await rejectsWith('unknown_version', edits.rollBackVersion({ ...of, expected: 4, to: 5, by: 'bob', now }))
      assert.equal((await edits.rollBackVersion({ ...of, expected: 4, to: 2, by: 'bob', now })).version, 2)
      const { releases } = await edits.listReleases({ ...of, limit: 9 })
      assert.deepEqual(releases.map(({ version, by }) => `${version} ${by}`), ['2 bob', '0 bob', '1 bob', '2 ann', '1 ann'])
    },
  },
  {
    name: '[O1.6] versions and releases are read one by one and as pages, the newest first, also after the store is opened again',
    async run({ store: open, reopen }) {
      const opened = await open()
      await versions(opened, 3)
      for (const version of [1, 2, 3]) await opened.publishVersion(release(version - 1, version))
      const edits = reopen ? await reopen(opened) : opened
      const page = await edits.listVersions({ ...of, limit: 2 })
      assert.deepEqual([page.versions.map(({ version }) => version), page.more], [[3, 2], true])
      const rest = await edits.listVersions({ ...of, before: 2, limit: 2 })
      assert.deepEqual([rest.versions.map(({ contents }) => textOf(contents)), rest.more], [['Version 1.'], false])
      const { releases, more } = await edits.listReleases({ ...of, before: 3, limit: 1 })
      assert.deepEqual([releases.map((one) => one.release), more], [[2], true])
      assert.deepEqual((await edits.getVersion(of, 2))?.contents, { instructions: 'Version 2.' })
      assert.deepEqual([await edits.getVersion(of, 4), await edits.getVersion({ ...of, id: 'agent-2' }, 1)], [null, null])
    },
  },
  {
    name: '[O1.7] a run keeps the version that it began with, in another process too; an agent that is not edited gets none',
    async run({ store: open }) {
      const store = await open()
      await versions(store, 2)
      await store.publishVersion(release(0, 1))
      const { fence, run } = await begun(store, 'a', { options: { maxSteps: 3 } })
      assert.deepEqual([run.edit, run.options], [{ version: 1, release: 1 }, { maxSteps: 3 }])
      await store.publishVersion(release(1, 2))
      await gone(store, fence.owner)
      await alive(store, 'p2')
      const claimed = await store.claim(fence.threadId, 'p2')
      assert.ok(claimed)
      const continued = await store.beginRun(claimed.fence, edited)
      assert.deepEqual([continued?.resumed, continued?.run.edit], [true, { version: 1, release: 1 }])
      await commit(store, { ...(continued as Begun), fence: claimed.fence }, finish)
      assert.deepEqual((await store.findRun(run.runId))?.edit, { version: 1, release: 1 })
      const other = { threadId: 'thread-2' }
      assert.deepEqual(await editOfRun(store, 'b', other), { version: 2, release: 2 })
      assert.deepEqual(await editOfRun(store, 'c', { ...other, options: { agentVersion: 1 } }), { version: 1 })
      assert.equal(await editOfRun(store, 'd', other, windows(wide)), undefined)
      await alive(store, 'p1')
      const woken = await acceptOne(store, send('e', { ...other, claim: { owner: 'p1', begin: edited } }))
      assert.ok(woken.begun === undefined || woken.begun?.run.edit?.version === 2)
    },
  },
  {
    name: '[O1.8] rules choose by resource, by stored request context and by a stable share of resources; the first that fits counts',
    async run({ store: open }) {
      const store = await open()
      await versions(store, 3)
      const rules = [{ version: 2, resources: ['acme'], context: { plan: ['pro', 'team'] } }, { version: 3, percent: 40 }]
      await store.publishVersion(release(0, 1, { rules }))
      const versionOf = async (id: string, resourceId: string, options?: Send['options']) => {
        const edit = await editOfRun(store, id, { threadId: id, resourceId, ...(options && { options }) })
        return (edit as { version: number }).version
      }
      assert.equal(await versionOf('a', 'acme', { requestContext: { plan: 'pro' } }), 2)
      assert.notEqual(await versionOf('b', 'acme', { requestContext: { plan: 'free' } }), 2)
      assert.notEqual(await versionOf('c', 'other', { requestContext: { plan: 'pro' } }), 2)
      const names = Array.from({ length: 12 }, (_, nth) => `resource-${nth}`)
      const sides = async (round: string) => {
        const found: number[] = []
        for (const name of names) found.push(await versionOf(`${round}-${name}`, name))
        return found
      }
      const first = await sides('first')
      assert.deepEqual(new Set(first), new Set([1, 3]))
      await store.publishVersion(release(1, 2, { rules }))
      assert.deepEqual((await sides('second')).map((version) => (version === 2 ? 1 : version)), first)
    },
  },
  {
    name: '[O4.1] [O4.2] a prompt block has versions and releases; a release of an agent needs its blocks to be published',
    async run({ store: open, reopen }) {
      const first = await open()
      const tone = { kind: 'block', id: 'tone' } as const
      await rejectsWith('edit_conflict', first.saveVersion({ ...tone, base: 1, contents: { content: 'x' }, by: 'ann', now }))
      const saved = await first.saveVersion({ ...tone, base: 0, contents: { content: 'Be kind.' }, by: 'ann', now })
      const version = { ...tone, version: 1, base: 0, contents: { content: 'Be kind.' }, by: 'ann', createdAt: now }
      assert.deepEqual(saved, { created: true, version })
      await first.saveVersion(draft(0, { instructions: [{ type: 'prompt_block_ref', id: 'tone' }] }))
      await first.saveVersion(draft(1, { instructions: 'Without.' }))
      await assert.rejects(first.publishVersion(release(0, 1)), { code: 'unknown_version', details: { blockId: 'tone', version: 0 } })
      await rejectsWith('unknown_version', first.publishVersion({ ...tone, expected: 0, version: 0, by: 'ann', now }))
      const store = reopen ? await reopen(first) : first
      assert.equal((await store.publishVersion({ ...tone, expected: 0, version: 1, by: 'ann', now })).release, 1)
      await rejectsWith('unknown_version', store.rollBackVersion({ ...tone, expected: 1, by: 'ann', now }))
      assert.deepEqual(await store.listBlockUsers('tone'), [])
      await store.publishVersion(release(0, 1))
      assert.deepEqual([await store.listBlockUsers('tone'), await store.listBlockUsers('other')], [[agentId], []])
      assert.deepEqual(await store.listPromptBlocks({ limit: 9 }), { ids: ['tone'], more: false })
      assert.deepEqual(await store.listPromptBlocks({ after: 'tone', limit: 9 }), { ids: [], more: false })
      await store.publishVersion(release(1, 2))
      assert.deepEqual(await store.listBlockUsers('tone'), [])
    },
  },
  {
    name: '[O4.3] a run keeps the versions of the prompt blocks that it began with; draft has the latest of all',
    async run({ store: open }) {
      const store = await open()
      const tone = { kind: 'block', id: 'tone', by: 'ann', now } as const
      for (const [base, content] of ['One.', 'Two.', 'Three.'].entries()) await store.saveVersion({ ...tone, base, contents: { content } })
      await store.publishVersion({ ...tone, expected: 0, version: 1 })
      await store.saveVersion(draft(0, { instructions: [{ type: 'text', content: 'Hello.' }, { type: 'prompt_block_ref', id: 'tone' }] }))
      await store.publishVersion(release(0, 1))
      const { fence, run } = await begun(store, 'a')
      assert.deepEqual(run.edit, { version: 1, release: 1, blocks: { tone: 1 } })
      await store.publishVersion({ ...tone, expected: 1, version: 2 })
      await gone(store, fence.owner)
      await alive(store, 'p2')
      const claimed = await store.claim(fence.threadId, 'p2')
      assert.ok(claimed)
      const continued = await store.beginRun(claimed.fence, edited)
      assert.deepEqual(continued?.run.edit, run.edit)
      await rejectsWith('edit_in_use', store.deleteVersions({ ...tone, version: 1 }))
      await commit(store, { ...(continued as Begun), fence: claimed.fence }, finish)
      assert.deepEqual(await store.deleteVersions({ ...tone, version: 1 }), [1])
      const other = { threadId: 'thread-2' }
      assert.deepEqual(await editOfRun(store, 'b', other), { version: 1, release: 1, blocks: { tone: 2 } })
      assert.deepEqual(await editOfRun(store, 'c', { ...other, options: { agentVersion: 1 } }), { version: 1, blocks: { tone: 2 } })
      const refs = ['tone', 'none'].map((id) => ({ type: 'prompt_block_ref', id }) as const)
      await store.saveVersion(draft(1, { instructions: refs }))
      assert.deepEqual(await editOfRun(store, 'd', { ...other, options: { agentVersion: 'draft' } }), { version: 2, blocks: { tone: 3 } })
      const asked = { agentId, context: {} }
      assert.deepEqual(await store.editOfRun(asked), { version: 1, release: 1, blocks: { tone: 2 } })
      assert.deepEqual(await store.editOfRun(asked, 'draft'), { version: 2, blocks: { tone: 3 } })
      assert.deepEqual(await store.editOfRun(asked, 0), { version: 0 })
      assert.equal(await store.editOfRun({ ...asked, agentId: 'agent-2' }), undefined)
    },
  },
  {
    name: '[O4.4] what runs get, and what an unfinished run has, is not deleted; a number of a deleted version is not used again',
    async run({ store: open, reopen }) {
      const store = await open()
      const by = { ...of, by: 'bob', now }
      await versions(store, 3)
      await store.publishVersion(release(0, 1))
      await rejectsWith('edit_in_use', store.deleteVersions({ ...by, version: 1 }))
      await rejectsWith('edit_in_use', store.deleteVersions(by))
      await rejectsWith('unknown_version', store.deleteVersions({ ...by, version: 4 }))
      const waiting = await begun(store, 'a')
      const call = { toolCallId: 'c', toolName: 'pay', args: {}, kind: 'approval' as const }
      await commit(store, waiting, { rows: [row('said', 'assistant')], end: { status: 'suspended', calls: [call] } })
      await store.publishVersion(release(1, 2))
      await rejectsWith('edit_in_use', store.deleteVersions({ ...by, version: 1 }))
      assert.deepEqual(await store.deleteVersions({ ...by, version: 3, why: 'a mistake' }), [3])
      assert.equal(await store.getVersion(of, 3), null)
      await rejectsWith('unknown_version', store.publishVersion(release(2, 3)))
      const reopened = reopen ? await reopen(store) : store
      const listed = await reopened.listVersions({ ...of, deleted: true, limit: 9 })
      const deleted = { by: 'bob', at: now, why: 'a mistake' }
      const shown = { ...of, version: 3, base: 2, contents: {}, by: 'ann', createdAt: now, deleted }
      assert.deepEqual(listed, { versions: [shown], more: false })
      assert.deepEqual((await reopened.listVersions({ ...of, limit: 9 })).versions.map(({ version }) => version), [2, 1])
      const saved = await reopened.saveVersion(draft(2, { instructions: 'Again.' }))
      assert.deepEqual([saved.version.version, saved.version.base], [4, 2])
    },
  },
]

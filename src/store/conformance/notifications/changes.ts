import assert from 'node:assert/strict'
import { claim, decided, note, now, scope, window, type NotificationCase } from './fixture.ts'

/** The changes that watchers of an inbox read. */
export const notificationChangeConformance: NotificationCase[] = [
  {
    name: '[N4.1] changes after a cursor are listed with each record once, as it is now, paged, in the order of its last change',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('early')])
      const { changes, cursor } = await store.listChanges({ resourceId: scope.resourceId, limit: 10 })
      assert.deepEqual(changes, [])
      await store.ingest(['n1', 'n2', 'n3', 'n4'].map((id) => note(id, { priority: 'low' })))
      await store.settle(['n1', 'n2', 'n3', 'n4'].map((id) => decided(id, { action: 'summarize', summary: window })))
      await store.markNotifications(scope, ['n1'], 'dismissed', now)
      const [batch] = (await store.claimDue({ ...claim, now: now + 30 })).batches
      await store.summarised(batch?.id ?? '', 'summary-1')
      const seen: Array<[string, string, string | undefined]> = []
      let after = cursor
      for (let more = true; more;) {
        const page = await store.listChanges({ resourceId: scope.resourceId, after, limit: 1 })
        seen.push(
          ...page.changes.map(({ record }): [string, string, string | undefined] => [record.id, record.status, record.summarySignalId]),
        )
        after = page.cursor
        more = page.more
      }
      assert.deepEqual(seen.toSorted(([one], [other]) => one.localeCompare(other)), [
        ['n1', 'dismissed', 'summary-1'], ['n2', 'pending', 'summary-1'], ['n3', 'pending', 'summary-1'], ['n4', 'pending', 'summary-1'],
      ])
      assert.equal(seen[0]?.[0], 'n1')
      assert.deepEqual((await store.listChanges({ resourceId: scope.resourceId, after, limit: 10 })).changes, [])
      await store.retryNotifications(scope, ['n2'], now)
      await store.ingest([note('n2-again', { dedupeKey: 'k' }), note('n2-more', { dedupeKey: 'k' })])
      assert.deepEqual((await store.listChanges({ resourceId: scope.resourceId, after, limit: 10 })).changes.map(
        ({ record }) => [record.id, record.coalescedCount],
      ), [['n2-again', 2]])
      await assert.rejects(store.listChanges({ resourceId: scope.resourceId, after: 'yesterday', limit: 1 }), { code: 'invalid_argument' })
    },
  },
  {
    name: '[N4.1] a change after a cursor is found behind any number of changes by others',
    async run({ store: open }) {
      const store = await open()
      const other = { threadId: 'thread-2', resourceId: 'resource-2' }
      await store.ingest([note('n1'), note('other', { ...other, dedupeKey: 'k' })])
      const { cursor } = await store.listChanges({ resourceId: scope.resourceId, limit: 1 })
      const changesOfOther = Array.from({ length: 40 }, (_, index) => index)
      await store.ingest([note('n2')])
      await Promise.all(changesOfOther.map((index) => store.ingest([note(`other-${index}`, { ...other, dedupeKey: 'k' })])))
      await store.ingest([note('n3')])
      await store.markNotifications(scope, ['n1'], 'seen', now)
      const seen: string[] = []
      let after = cursor
      for (let more = true; more;) {
        const page = await store.listChanges({ resourceId: scope.resourceId, after, limit: 1 })
        seen.push(...page.changes.map(({ record }) => record.id))
        after = page.cursor
        more = page.more
      }
      assert.deepEqual(seen, ['n2', 'n3', 'n1'])
      assert.deepEqual(
        (await store.listChanges({ ...other, after: cursor, limit: 5 })).changes.map(({ record }) => [record.id, record.coalescedCount]),
        [['other', 41]],
      )
    },
  },
  {
    name: '[N4.2] a watcher is notified of the inbox that changed, after the commit, until it unsubscribes',
    async run({ store: open }) {
      const store = await open()
      const told: string[] = []
      const stop = store.onChange((resourceIds) => void told.push(...resourceIds))
      await store.ingest([note('n1')])
      assert.deepEqual(told.splice(0), [scope.resourceId])
      await store.settle([decided('n1', { action: 'deliver' })])
      await store.delivered([{ threadId: scope.threadId, id: 'n1', signalId: 's', status: 'delivered', now }])
      await store.markNotifications(scope, ['n1'], 'seen', now)
      assert.deepEqual(told.splice(0), [scope.resourceId, scope.resourceId, scope.resourceId])
      await store.markNotifications(scope, ['n1'], 'seen', now)
      await store.claimDue(claim)
      assert.deepEqual(told, [])
      stop()
      await store.ingest([note('n2')])
      assert.deepEqual(told, [])
    },
  },
  {
    name: '[N4.3] changes are listed for a resource, or for one of its threads',
    async run({ store: open }) {
      const store = await open()
      const other = { threadId: 'thread-2', resourceId: 'resource-2' }
      await store.ingest([note('n1'), note('n2', { threadId: 'thread-3' }), note('n3', other)])
      const ids = async (query: { resourceId: string; threadId?: string }) =>
        (await store.listChanges({ ...query, after: '0.0', limit: 10 })).changes.map(({ record }) => record.id)
      assert.deepEqual(await ids({ resourceId: 'resource-1' }), ['n1', 'n2'])
      assert.deepEqual(await ids({ resourceId: 'resource-1', threadId: 'thread-3' }), ['n2'])
      assert.deepEqual(await ids({ resourceId: 'resource-1', threadId: 'thread-2' }), [])
      assert.deepEqual(await ids({ resourceId: 'resource-2' }), ['n3'])
    },
  },
  {
    name: '[N4.1] a cursor stays valid when records are removed: later changes follow it, also on a transferred thread',
    async run({ store: open }) {
      const store = await open()
      await store.ingest([note('n1'), note('n2', { threadId: 'thread-2' })])
      const { cursor } = await store.listChanges({ resourceId: scope.resourceId, limit: 1 })
      await store.forgetThreads(['thread-2'])
      await store.ingest([note('n3')])
      assert.deepEqual(
        (await store.listChanges({ resourceId: scope.resourceId, after: cursor, limit: 5 })).changes.map(({ record }) => record.id), ['n3'],
      )
      const other = await store.listChanges({ resourceId: 'resource-2', limit: 1 })
      await store.giveThread(scope.threadId, 'resource-2')
      assert.deepEqual(
        (await store.listChanges({ resourceId: 'resource-2', after: other.cursor, limit: 5 })).changes.map(({ record }) => record.id),
        ['n1', 'n3'],
      )
      assert.deepEqual((await store.listChanges({ resourceId: scope.resourceId, after: '0.0', limit: 5 })).changes, [])
    },
  },
]

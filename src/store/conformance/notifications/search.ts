import assert from 'node:assert/strict'
import { note, scope } from './fixture.ts'
import type { NotificationCase } from './notifications.ts'

/** What a list is searched for. */
export const notificationSearchConformance: NotificationCase[] = [
  {
    name: '[N4.5] a search finds its words whatever their case, in every script, and takes no sign for another',
    async run({ store: open }) {
      const store = await open()
      const summaries = ['ÄRGER mit Österreich', 'Ошибка сборки', 'ΟΔΥΣΣΕΥΣ', '100% of [a-z]* and ?', 'plain_text \\ x^2']
      await store.ingest(summaries.map((summary, index) => note(`n${index}`, { summary, source: 'GitHub', kind: 'Ci-Status' })))
      const found = async (search: string) => (await store.listNotifications({ ...scope, search })).notifications.map(({ id }) => id).toReversed().join()
      for (const [search, ids] of [
        ['ärger', 'n0'], ['ÖSTERREICH', 'n0'], ['ошибка', 'n1'], ['ОШИБКА СБ', 'n1'], ['οδυσσευς', 'n2'], ['οδυσσευσ', 'n2'],
        ['%', 'n3'], ['[a-z]', 'n3'], ['*', 'n3'], ['?', 'n3'], ['0%o', ''], ['_', 'n4'], ['\\', 'n4'], ['^', 'n4'], ['x.2', ''],
        ['GITHUB', 'n0,n1,n2,n3,n4'], ['ci-status', 'n0,n1,n2,n3,n4'], ['', 'n0,n1,n2,n3,n4'], ['arger', ''],
      ] as const) assert.equal(await found(search), ids, search)
      assert.equal(await found('Ä'.repeat(1_000)), '')
    },
  },
  {
    name: '[N4.4] what can\'t be searched for, and filters that there are not, are refused by name',
    async run({ store: open }) {
      const store = await open()
      const refused = (field: string) => ({ code: 'invalid_argument', details: { field } })
      for (const search of ['x'.repeat(1_001), 'x'.repeat(60_000), 'a\0b', '\ud800']) await assert.rejects(store.listNotifications({ ...scope, search }), refused('search'))
      const misspelt = { ...scope, stauts: 'pending' }
      await assert.rejects(store.listNotifications(misspelt), refused('stauts'))
    },
  },
]

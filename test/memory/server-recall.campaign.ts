import { expect, it } from 'vitest'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { newFile } from '../new-file.ts'
import { opened, recallSuite, say } from '../recall/conformance/suite.ts'
import { hranaServer } from './hrana-server.ts'
import { kept } from './kept.ts'

const token = 'a-token'

async function served() {
  const server = kept(await hranaServer(newFile(), token))
  return { server, outlivesStores: true, many: 350, open: () => kept(new LibSQLStore({ url: server.url, authToken: token })) }
}

recallSuite('on a libSQL server', served)

it('[K1.24] a search on a libSQL server takes few requests, however many messages there are', async () => {
  const place = await served()
  const { store, recall } = await opened(place)
  await say(store, 't', 'r', ...Array.from({ length: 200 }, (_, at) => `Remark number ${at} about bread.`))
  const search = () => recall.search({ resourceId: 'r', text: 'which remark about bread was number 17', limit: 8 })
  await search()
  const before = place.server.asked()
  expect(await search()).toHaveLength(8)
  expect(place.server.asked() - before).toBeLessThanOrEqual(20)
})

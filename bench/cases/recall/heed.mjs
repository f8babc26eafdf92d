import { importHeed, report } from '../../harness/side.mjs'
import { newDatabase } from '../../threads/database.mjs'
import { embedder, searches, semanticRecall } from './searches.mjs'

const { Memory } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')
const memory = new Memory({ storage: new LibSQLStore({ url: newDatabase() }), embedder, options: { semanticRecall } })
const embedded = async () => {
  const { pending, embedders: [vectors] } = await memory.recallStatus()
  return pending === 0 && vectors ? vectors.embedded : 0
}
report(await searches(memory, { atOnce: 100, embedded }))

import { LibSQLStore, LibSQLVector } from '@mastra/libsql'
import { Memory } from '@mastra/memory'
import { report } from '../../harness/side.mjs'
import { newDatabase } from '../../threads/database.mjs'
import { embedder, searches, semanticRecall } from './searches.mjs'

const url = newDatabase()
const vector = new LibSQLVector({ id: 'vectors', url })
const memory = new Memory({ storage: new LibSQLStore({ id: 'threads', url }), vector, embedder, options: { semanticRecall } })
const embedded = async () => {
  const [indexName] = await vector.listIndexes()
  return indexName ? (await vector.describeIndex({ indexName })).count : 0
}
report(await searches(memory, { atOnce: 100, embedded }))

import { checkNodeVersion } from '../../base/node-version.ts'

checkNodeVersion()

export {
  MemoryLibSQL, NotificationsLibSQL, SchedulesLibSQL, SubscriptionsLibSQL, WatchesLibSQL, type LibSQLDomainOptions,
} from './domains.ts'
export { LibSQLStore, type LibSQLStoreOptions } from './store.ts'
export type { LibSQLClient, LibSQLResult, LibSQLTransaction } from './remote.ts'
export { LibSQLVector, type LibSQLVectorOptions, type VectorQuery, type VectorUpsert } from '../../recall/vectors/vector.ts'
export type { VectorIndexDescription, VectorMetric, VectorQueryResult } from '../../recall/vectors/vector-engine.ts'

import { checkNodeVersion } from '../../base/node-version.ts'

checkNodeVersion()

export { PostgresStore, PostgresStore as PgStore, type PostgresStoreOptions } from './store.ts'
export type { PgClient, PgPool } from './sessions.ts'
export { PgVector, type PgVectorOptions } from './vector.ts'
export type { QueryClient, QueryPool } from './queries.ts'

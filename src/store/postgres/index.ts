import { checkNodeVersion } from '../../base/node-version.ts'

checkNodeVersion()

export { PostgresStore, PostgresStore as PgStore, type PostgresStoreOptions } from './store.ts'
export type { PgClient, PgPool } from './sessions.ts'

export { MemoryLibSQL } from './memory-domain.ts'
export { LibSQLStore, type LibSQLStoreOptions } from './store.ts'
export { NotificationsLibSQL } from './notifications-domain.ts'
export type { LibSQLClient, LibSQLResult, LibSQLTransaction } from './client.ts'

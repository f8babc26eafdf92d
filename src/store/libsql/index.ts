export { MemoryLibSQL } from './memory-domain.ts'
export { LibSQLStore, type LibSQLStoreOptions } from './store.ts'

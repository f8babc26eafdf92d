export { LibSQLStore, type LibSQLStoreOptions } from './store.ts'

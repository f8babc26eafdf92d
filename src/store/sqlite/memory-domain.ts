import { LibSQLStore } from './store.ts'

/** The memory domain alone, for a `CompositeStore`: threads with all that belongs to them, in a file of their own. */
export class MemoryLibSQL extends LibSQLStore {}

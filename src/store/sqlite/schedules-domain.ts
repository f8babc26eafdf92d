import { LibSQLSchedules } from '../sql/schedules.ts'
import { LibSQLStore } from './store.ts'
import type { LibSQLStoreOptions } from './store-options.ts'

/** The schedules domain alone, for a `CompositeStore`: what is sent at certain times, in a file of its own. */
export class SchedulesLibSQL extends LibSQLSchedules {
  constructor(options: LibSQLStoreOptions) {
    super(new LibSQLStore(options), { owned: true })
  }
}

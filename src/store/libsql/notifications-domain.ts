import { LibSQLInbox } from './notifications.ts'
import { LibSQLStore, type LibSQLStoreOptions } from './store.ts'

/** The notifications domain alone, for a `CompositeStore`: the inbox in a file of its own. */
export class NotificationsLibSQL extends LibSQLInbox {
  constructor(options: LibSQLStoreOptions) {
    super(new LibSQLStore(options), { owned: true })
  }
}

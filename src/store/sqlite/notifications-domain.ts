import { LibSQLInbox } from '../sql/notifications/notifications.ts'
import { LibSQLStore } from './store.ts'
import type { LibSQLStoreOptions } from './store-options.ts'

/** The notifications domain alone, for a `CompositeStore`: the inbox in a file of its own. */
export class NotificationsLibSQL extends LibSQLInbox {
  constructor(options: LibSQLStoreOptions) {
    super(new LibSQLStore(options), { owned: true })
  }
}

import { SqlInbox } from '../sql/notifications/notifications.ts'
import { SqlSchedules } from '../sql/schedules.ts'
import { SqlSubscriptions } from '../sql/subscriptions.ts'
import { SqlWatches } from '../sql/watches/watches.ts'
import { LibSQLStore, type LibSQLStoreOptions } from './store.ts'

/** The memory domain alone, for a `CompositeStore`: threads and all that belongs to them, in a database of their own. */
export class MemoryLibSQL extends LibSQLStore {}

/** The notifications domain alone, for a `CompositeStore`: the inbox in a database of its own. */
export class NotificationsLibSQL extends SqlInbox {
  constructor(options: LibSQLStoreOptions) {
    super(new LibSQLStore(options), { owned: true })
  }
}

/** The schedules domain alone, for a `CompositeStore`: scheduled sends in a database of their own. */
export class SchedulesLibSQL extends SqlSchedules {
  constructor(options: LibSQLStoreOptions) {
    super(new LibSQLStore(options), { owned: true })
  }
}

/** The subscriptions domain alone, for a `CompositeStore`: the subscriptions of threads to sources, in a database of their own. */
export class SubscriptionsLibSQL extends SqlSubscriptions {
  constructor(options: LibSQLStoreOptions) {
    super(new LibSQLStore(options), { owned: true })
  }
}

/** The watches domain alone, for a `CompositeStore`: inbound messages and watches in a database of their own. */
export class WatchesLibSQL extends SqlWatches {
  constructor(options: LibSQLStoreOptions) {
    super(new LibSQLStore(options), { owned: true })
  }
}

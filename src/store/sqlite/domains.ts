import { checkNames } from '../../base/arguments.ts'
import type { Clock } from '../../base/clock.ts'
import { SqlInbox } from '../sql/notifications/notifications.ts'
import { SqlSchedules } from '../sql/schedules.ts'
import { SqlSubscriptions } from '../sql/subscriptions.ts'
import { SqlWatches } from '../sql/watches/watches.ts'
import { LibSQLStore, type LibSQLStoreOptions } from './store.ts'

/** The memory domain alone, for a `CompositeStore`: threads and all that belongs to them, in a database of their own. */
export class MemoryLibSQL extends LibSQLStore {}

/** The database of one domain. The name, the retention and the namespace are those of the storage that the domain is a part of. */
export type LibSQLDomainOptions = Pick<LibSQLStoreOptions, 'url' | 'authToken' | 'client' | 'busyTimeout'>

function databaseOf(name: string, options: LibSQLDomainOptions, more: readonly string[] = []): LibSQLStore {
  checkNames(name, options, ['url', 'authToken', 'client', 'busyTimeout', ...more])
  return new LibSQLStore(options)
}

/** The notifications domain alone, for a `CompositeStore`: the inbox in a database of its own. */
export class NotificationsLibSQL extends SqlInbox {
  constructor(options: LibSQLDomainOptions & { clock?: Clock }) {
    super(databaseOf('NotificationsLibSQL', options, ['clock']), { owned: true })
  }
}

/** The schedules domain alone, for a `CompositeStore`: scheduled sends in a database of their own. */
export class SchedulesLibSQL extends SqlSchedules {
  constructor(options: LibSQLDomainOptions) {
    super(databaseOf('SchedulesLibSQL', options), { owned: true })
  }
}

/** The subscriptions domain alone, for a `CompositeStore`: the subscriptions of threads to sources, in a database of their own. */
export class SubscriptionsLibSQL extends SqlSubscriptions {
  constructor(options: LibSQLDomainOptions) {
    super(databaseOf('SubscriptionsLibSQL', options), { owned: true })
  }
}

/** The watches domain alone, for a `CompositeStore`: inbound messages and watches in a database of their own. */
export class WatchesLibSQL extends SqlWatches {
  constructor(options: LibSQLDomainOptions & { clock?: Clock }) {
    super(databaseOf('WatchesLibSQL', options, ['clock']), { owned: true })
  }
}

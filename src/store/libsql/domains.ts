import type { StoreDomains } from '../storage.ts'
import type { ConnectionHolder } from './domain.ts'
import { LibSQLInbox } from './notifications.ts'
import { LibSQLSchedules } from './schedules.ts'
import { LibSQLSubscriptions } from './subscriptions.ts'

/** What a database keeps besides threads. */
export function domainsIn(holder: ConnectionHolder): Pick<StoreDomains, 'notifications' | 'schedules' | 'subscriptions'> {
  return { notifications: new LibSQLInbox(holder), schedules: new LibSQLSchedules(holder), subscriptions: new LibSQLSubscriptions(holder) }
}

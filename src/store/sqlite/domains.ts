import type { StoreDomains } from '../contract/storage.ts'
import type { ConnectionHolder } from '../sql/domain.ts'
import { LibSQLInbox } from '../sql/notifications/notifications.ts'
import { LibSQLSchedules } from '../sql/schedules.ts'
import { LibSQLSubscriptions } from '../sql/subscriptions.ts'

/** What a database keeps besides threads. */
export function domainsIn(holder: ConnectionHolder): Pick<StoreDomains, 'notifications' | 'schedules' | 'subscriptions'> {
  return { notifications: new LibSQLInbox(holder), schedules: new LibSQLSchedules(holder), subscriptions: new LibSQLSubscriptions(holder) }
}

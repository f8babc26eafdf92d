import { LibSQLStore } from './store.ts'
import type { LibSQLStoreOptions } from './store-options.ts'
import { LibSQLSubscriptions } from '../sql/subscriptions.ts'

/** The subscriptions domain alone, for a `CompositeStore`: what threads hear of sources, in a file of its own. */
export class SubscriptionsLibSQL extends LibSQLSubscriptions {
  constructor(options: LibSQLStoreOptions) {
    super(new LibSQLStore(options), { owned: true })
  }
}

import { checkNames, checkText, checkWhole } from '../../base/arguments.ts'
import type { Clock } from '../../base/clock.ts'
import { checkRetention, type Retention } from '../retention.ts'
import type { LibSQLClient } from './client.ts'

export interface LibSQLStoreOptions {
  id?: string
  /** `file:./path.db`, `:memory:`, or a server: `libsql://…`, `https://…` (needs the package `@libsql/client`). */
  url: string
  /** For a server. */
  authToken?: string
  /** A client of `@libsql/client` that is used for everything, for settings of its own such as a replica. The store closes it. */
  client?: LibSQLClient
  /** Of the times that the store gives by itself, and of who is alive. The system's unless told. */
  clock?: Clock
  /** For how long a write waits, in milliseconds, while another process holds the file. 10 seconds unless told. */
  busyTimeout?: number
  /** For how long things are kept. What is older goes by itself while a Heed runs on the store, or with `prune`. For ever unless told. */
  retention?: Retention
  /**
   * Names the database on the bus of `new Heed({ bus })`. Give it where processes know one database by different urls, or different databases by
   * one url, such as files at the same path of two machines. Defaults to the url without credentials.
   */
  namespace?: string
}

/** Refuses by name what is no option of a store, and values that can't be meant. */
export function checkStoreOptions(options: LibSQLStoreOptions): void {
  checkNames('LibSQLStore', options, ['id', 'url', 'authToken', 'client', 'clock', 'busyTimeout', 'retention', 'namespace'])
  const { id, authToken, busyTimeout, retention, namespace } = options
  if (id !== undefined) checkText('id', id)
  if (namespace !== undefined) checkText('namespace', namespace)
  if (authToken !== undefined) checkText('authToken', authToken)
  if (busyTimeout !== undefined) checkWhole('busyTimeout', busyTimeout)
  if (retention !== undefined) checkRetention(retention)
}

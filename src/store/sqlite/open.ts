import type { Clock } from '../../base/clock.ts'
import { remoteClient, type LibSQLClient } from './client.ts'
import { Connection } from './connection.ts'
import { storeFailure } from '../sql/failure.ts'
import { resolveFile, type Location } from './location.ts'
import { RemoteConnection, type DatabaseConnection } from './remote.ts'
import { share } from './shared.ts'

export interface Opening {
  location: Location
  url: string
  client: LibSQLClient | undefined
  authToken: string | undefined
  clock: Clock
  busyTimeout: number
}

export interface Opened {
  connection: DatabaseConnection
  release(): Promise<void>
}

/** A connection to the database, wherever it is, and a way to give it back. */
export async function openDatabase({ location, url, client, authToken, ...settings }: Opening): Promise<Opened> {
  if (client || location.kind === 'remote') {
    const connection = await RemoteConnection.open(client ?? (await remoteClient(url, authToken)), { ...settings, name: url })
    return { connection, release: () => connection.close() }
  }
  if (location.kind === 'memory') {
    const connection = await Connection.open({ ...settings, location })
    return { connection, release: () => connection.close() }
  }
  const path = await resolveFile(location.path).catch((error: unknown) => {
    throw storeFailure(error, location.path)
  })
  return share(path, () => Connection.open({ ...settings, location: { kind: 'file', path } }))
}

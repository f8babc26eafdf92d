import type { Bus, BusConnection, BusConnectOptions } from '../contract.ts'
import { Hub } from './hub.ts'

/** The hubs of this process by folder: one for each folder, however many stores name the same database. */
const hubs = new Map<string, Hub>()

/** Connects the processes that share a database file, through a folder beside it. */
export class LibSQLBus implements Bus {
  readonly #path: () => Promise<string>

  /** The path of the database. It is resolved at each `connect`. */
  constructor(path: () => Promise<string>) {
    this.#path = path
  }

  async connect({ namespace, id, handler }: BusConnectOptions): Promise<BusConnection> {
    const path = await this.#path()
    // The same in processes that mount the database at different paths.
    const name = namespace === `file:${path}` ? '' : namespace
    const folder = `${path}-bus`
    let hub = hubs.get(folder)
    if (!hub) hubs.set(folder, (hub = new Hub(folder)))
    return connectTo(hub, { namespace: name, id, handler }, () => {
      if (hubs.get(folder) === hub) hubs.delete(folder)
    })
  }
}

/** A connection through a hub, which closes with its last connection. */
export async function connectTo(hub: Hub, { namespace, id, handler }: BusConnectOptions, closing: () => void): Promise<BusConnection> {
  await hub.add(namespace, id, handler)
  return {
    get hasPeers() {
      return hub.hasPeers(namespace)
    },
    get disconnected() {
      return hub.disconnected
    },
    ready: () => hub.ready(namespace, id),
    send: (message, to) => hub.send(namespace, id, message, to),
    flush: () => hub.flush(),
    poll: () => hub.poll(),
    async close() {
      if (!hub.remove(namespace, id)) return
      closing()
      await hub.close()
    },
  }
}

import type { Bus, BusConnection, BusConnectOptions } from '../contract.ts'
import type { Connect } from './client.ts'
import { Hub } from './hub.ts'

/** The hubs of this process by database: one for each, however many stores name it. */
const hubs = new Map<string, Hub>()

/** Connects the processes that share a PostgreSQL database, by its notifications. */
export class PostgresBus implements Bus {
  readonly #place: string
  readonly #connect: Connect

  /** `place` names the database: buses of one place share their connections. */
  constructor(place: string, connect: Connect) {
    this.#place = place
    this.#connect = connect
  }

  async connect(options: BusConnectOptions): Promise<BusConnection> {
    let hub = hubs.get(this.#place)
    if (!hub) hubs.set(this.#place, (hub = new Hub(this.#connect)))
    return connectTo(hub, options, () => {
      if (hubs.get(this.#place) === hub) hubs.delete(this.#place)
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
    ready: () => hub.ready(),
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

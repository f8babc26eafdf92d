import type { Bus } from '../../src/index.ts'
import { LocalBus } from '../../src/bus/local.ts'

/** A bus that delivers nothing before its caller returns, like one over a network: each message takes some turns of the event loop. */
export class NetworkBus implements Bus {
  readonly #bus = new LocalBus()
  readonly #turns: number

  constructor(turns = 5) {
    this.#turns = turns
  }

  connect({ handler, ...options }: Parameters<Bus['connect']>[0]): ReturnType<Bus['connect']> {
    let delivered = Promise.resolve()
    let closed = false
    const connecting = this.#bus.connect({
      ...options,
      handler: {
        onMessage: (message, from) => {
          delivered = delivered.then(() => this.#travel()).then(() => (closed ? undefined : handler.onMessage(message, from)))
        },
        onLoss: () => handler.onLoss(),
        wantsLowLatency: () => handler.wantsLowLatency(),
      },
    })
    return connecting.then((connection) => ({
      get hasPeers() {
        return connection.hasPeers
      },
      ready: () => this.#travel(4),
      send: (message, to) => connection.send(message, to),
      flush: () => this.#travel(),
      async poll() {
        await connection.poll()
        await delivered
      },
      close() {
        closed = true
        return connection.close()
      },
    }))
  }

  async #travel(times = 1): Promise<void> {
    for (let turn = 0; turn < this.#turns * times; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

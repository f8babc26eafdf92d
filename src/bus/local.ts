import type { Bus, BusListener, Seat } from './contract.ts'
import type { BusMessage } from './message.ts'

/** For those who share a process. Alone it does nothing. */
export class LocalBus implements Bus {
  readonly #members = new Map<string, BusListener>()

  async join(member: string, listener: BusListener): Promise<Seat> {
    const members = this.#members
    members.set(member, listener)
    return {
      get company() {
        return members.size > 1
      },
      say: (message, to) => this.#carry(member, message, to),
      leave: () => {
        members.delete(member)
        return Promise.resolve()
      },
    }
  }

  /** As a copy and later, like from another process: nobody is called in the middle of what they do. */
  #carry(from: string, message: BusMessage, to: string | undefined): void {
    const hearers = [...this.#members].filter(([member]) => member !== from && (to === undefined || to === member))
    if (hearers.length === 0) return
    const text = JSON.stringify(message)
    setImmediate(() => {
      for (const [member, listener] of hearers) if (this.#members.get(member) === listener) listener.hear(JSON.parse(text) as BusMessage, from)
    })
  }
}

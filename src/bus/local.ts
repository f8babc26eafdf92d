import type { Bus, BusListener, Seat } from './contract.ts'
import type { BusMessage } from './message.ts'

interface Member {
  listener: BusListener
  /** What was said to it and has not been heard. */
  inbox: Array<{ text: string; from: string }>
}

/** For those who share a process. Alone it does nothing. */
export class LocalBus implements Bus {
  readonly #members = new Map<string, Member>()

  async join(name: string, listener: BusListener): Promise<Seat> {
    const members = this.#members
    const member: Member = { listener, inbox: [] }
    members.set(name, member)
    return {
      get company() {
        return members.size > 1
      },
      say: (message, to) => this.#carry(name, message, to),
      settle: () => Promise.resolve(),
      listen: () => hear(member),
      leave: () => {
        members.delete(name)
        member.inbox.length = 0
        return Promise.resolve()
      },
    }
  }

  /** As a copy and later, like from another process: nobody is called in the middle of what they do. */
  #carry(from: string, message: BusMessage, to: string | undefined): void {
    const hearers = [...this.#members].flatMap(([name, member]) => (name !== from && (to === undefined || to === name) ? [member] : []))
    if (hearers.length === 0) return
    const text = JSON.stringify(message)
    for (const member of hearers) {
      member.inbox.push({ text, from })
      if (member.inbox.length === 1) setImmediate(hear, member)
    }
  }
}

function hear({ inbox, listener }: Member): void {
  for (const { text, from } of inbox.splice(0)) listener.hear(JSON.parse(text) as BusMessage, from)
}

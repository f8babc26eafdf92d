import { jsonText } from '../base/json.ts'
import type { Bus, BusConnection, BusConnectOptions, BusHandler } from './contract.ts'
import type { BusMessage } from './message.ts'

interface Member {
  handler: BusHandler
  /** Messages that were sent to it and not delivered yet. */
  queue: Array<{ text: string; from: string }>
}

/** Connects runtimes of one process. */
export class LocalBus implements Bus {
  readonly #namespaces = new Map<string, Map<string, Member>>()

  async connect({ namespace, id, handler }: BusConnectOptions): Promise<BusConnection> {
    const members = this.#namespaces.get(namespace) ?? new Map<string, Member>()
    this.#namespaces.set(namespace, members)
    const member: Member = { handler, queue: [] }
    members.set(id, member)
    return {
      get hasPeers() {
        return members.size > 1
      },
      async ready() {
        // A peer receives a `hello` in the first turn of the event loop, and its answer arrives in the second.
        for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
      },
      send: (message, to) => enqueue(members, id, message, to),
      flush: () => Promise.resolve(),
      poll: () => Promise.resolve(deliver(member)),
      close: () => {
        member.queue.length = 0
        if (members.get(id) === member) members.delete(id)
        if (members.size === 0 && this.#namespaces.get(namespace) === members) this.#namespaces.delete(namespace)
        return Promise.resolve()
      },
    }
  }
}

/** Copies the message and delivers it later, as another process would: a handler is never called inside of `send`. */
function enqueue(members: ReadonlyMap<string, Member>, from: string, message: BusMessage, to: string | undefined): void {
  const receivers = [...members].flatMap(([id, member]) => (id !== from && (to === undefined || to === id) ? [member] : []))
  if (receivers.length === 0) return
  const text = jsonText(message)
  for (const member of receivers) {
    member.queue.push({ text, from })
    if (member.queue.length === 1) setImmediate(deliver, member)
  }
}

function deliver({ queue, handler }: Member): void {
  for (const { text, from } of queue.splice(0)) handler.onMessage(JSON.parse(text) as BusMessage, from)
}

import { deepStrictEqual, ok } from 'node:assert'
import type { Bus, BusConnection } from '../contract.ts'
import type { BusMessage } from '../message.ts'

/** How the suite makes the bus that it checks. */
export interface BusHarness {
  /**
   * A new bus without connections. The function returns the bus; each call may return another access to it, as another process would have.
   */
  bus(): Promise<() => Bus>
}

/** Checks one promise. The ids in brackets are those of PROTOCOL.md. */
export interface BusCase {
  name: string
  run(harness: BusHarness): Promise<void>
}

interface Member {
  id: string
  connection: BusConnection
  received: Array<{ message: BusMessage; from: string }>
  /** Resolves when so many messages were received. */
  has(count: number): Promise<void>
}

async function connect(bus: Bus, id: string, namespace = 'one'): Promise<Member> {
  const received: Member['received'] = []
  const waiting: Array<{ count: number; resolve(): void }> = []
  const connection = await bus.connect({
    namespace,
    id,
    handler: {
      onMessage(message, from) {
        received.push({ message, from })
        for (const { count, resolve } of waiting) if (received.length >= count) resolve()
      },
      onLoss() {},
      wantsLowLatency: () => true,
    },
  })
  const has = (count: number) => new Promise<void>((resolve) => {
    if (received.length >= count) resolve()
    else waiting.push({ count, resolve })
  })
  return { id, received, connection, has }
}

/** Returns when each member knows its peers, with nothing received so far. */
async function introduce(...members: Member[]): Promise<void> {
  for (const { connection } of members) connection.send({ kind: 'hello' })
  const last = members.at(-1)
  const first = members[0]
  if (last && first && last !== first) {
    last.connection.send(mail('last to all'))
    await Promise.all(members.slice(0, -1).map((member) => until(member, 'last to all')))
    first.connection.send(mail('first to all'))
    await Promise.all(members.slice(1).map((member) => until(member, 'first to all')))
  }
  for (const member of members) member.received.length = 0
}

async function until(member: Member, threadId: string): Promise<void> {
  for (let count = 1; !member.received.some(({ message }) => 'threadId' in message && message.threadId === threadId); count++) {
    await member.has(Math.max(count, member.received.length + 1))
  }
}

const mail = (threadId: string): BusMessage => ({ kind: 'mail', threadId })

function threadIds(member: Member, sender?: Member): string[] {
  const received = member.received.filter(({ from }) => !sender || from === sender.id)
  return received.flatMap(({ message }) => (message.kind === 'mail' ? [message.threadId] : []))
}

async function close(...members: Member[]): Promise<void> {
  for (const { connection } of members) await connection.close()
}

const delivery: BusCase[] = [
  {
    name: '[B1.1] delivers to every other connection, in order and once, and not to the sender',
    async run(harness) {
      const bus = await harness.bus()
      const [a, b, c] = [await connect(bus(), 'a'), await connect(bus(), 'b'), await connect(bus(), 'c')]
      await introduce(a, b, c)
      const sent = Array.from({ length: 300 }, (_, index) => `a${index}`)
      for (const threadId of sent) a.connection.send(mail(threadId))
      await Promise.all([until(b, 'a299'), until(c, 'a299')])
      c.connection.send(mail('last'))
      await Promise.all([until(a, 'last'), until(b, 'last')])
      deepStrictEqual(threadIds(b, a), sent)
      deepStrictEqual(threadIds(c, a), sent)
      deepStrictEqual(threadIds(a), ['last'])
      await close(a, b, c)
    },
  },
  {
    name: '[B1.2] delivers an addressed message to its addressee alone',
    async run(harness) {
      const bus = await harness.bus()
      const [a, b, c] = [await connect(bus(), 'a'), await connect(bus(), 'b'), await connect(bus(), 'c')]
      await introduce(a, b, c)
      a.connection.send(mail('to b'), 'b')
      a.connection.send(mail('to no connection'), 'x')
      a.connection.send(mail('to all'))
      await Promise.all([until(b, 'to all'), until(c, 'to all')])
      deepStrictEqual(threadIds(b), ['to b', 'to all'])
      deepStrictEqual(threadIds(c), ['to all'])
      await close(a, b, c)
    },
  },
  {
    name: '[B1.3] delivers a message as it was when it was sent, up to 1 MB',
    async run(harness) {
      const bus = await harness.bus()
      const [a, b] = [await connect(bus(), 'a'), await connect(bus(), 'b')]
      await introduce(a, b)
      const text = 'ä 🚂 \u0000 " \\ '.repeat(48_000)
      const chunk = { type: 'text-delta' as const, runId: 'r', from: 'AGENT' as const, payload: { id: '1', text }, cursor: '3.1' }
      const message: BusMessage = { kind: 'events', threadId: 't', epoch: 3, first: 1, events: [{ type: 'chunk', chunk }] }
      a.connection.send(message)
      const before = structuredClone(message)
      message.threadId = 'changed'
      await b.has(1)
      deepStrictEqual(b.received[0]?.message, before)
      await close(a, b)
    },
  },
  {
    name: '[B1.6] has delivered what was flushed before when poll resolves',
    async run(harness) {
      const bus = await harness.bus()
      const [a, b] = [await connect(bus(), 'a'), await connect(bus(), 'b')]
      await introduce(a, b)
      for (let round = 1; round <= 20; round++) {
        a.connection.send(mail(`t${round}`))
        await a.connection.flush()
        await b.connection.poll()
        deepStrictEqual(threadIds(b).at(-1), `t${round}`)
        deepStrictEqual(b.received.length, round)
      }
      await close(a, b)
    },
  },
  {
    name: '[B1.4] delivers nothing after close and nothing that was sent before connect, and knows when a connection is alone',
    async run(harness) {
      const bus = await harness.bus()
      const a = await connect(bus(), 'a')
      ok(!a.connection.hasPeers)
      a.connection.send(mail('to no peer'))
      const [b, c] = [await connect(bus(), 'b'), await connect(bus(), 'c')]
      await introduce(a, b, c)
      ok(a.connection.hasPeers && b.connection.hasPeers)
      await close(c)
      a.connection.send(mail('one'))
      await until(b, 'one')
      deepStrictEqual(c.received, [])
      deepStrictEqual(threadIds(b), ['one'])
      await close(a, b)
    },
  },
]

const namespaces: BusCase[] = [
  {
    name: '[B1.8] keeps namespaces apart, with equal ids of connections, threads and resources',
    async run(harness) {
      const bus = await harness.bus()
      const [a1, b1] = [await connect(bus(), 'a', 'one'), await connect(bus(), 'b', 'one')]
      await introduce(a1, b1)
      const [a2, b2] = [await connect(bus(), 'a', 'two'), await connect(bus(), 'b', 'two')]
      await introduce(a2, b2)
      const sent: BusMessage[] = [
        { kind: 'hello' },
        { kind: 'watch', threadIds: ['main'] },
        { kind: 'inbox', resourceIds: ['user-1'] },
        { kind: 'events', threadId: 'main', resourceId: 'user-1', epoch: 1, first: 1, events: [{ type: 'anew' }] },
        { kind: 'goodbye' },
      ]
      for (const message of sent) a1.connection.send(message)
      for (const message of sent) a1.connection.send(message, 'b')
      a1.connection.send(mail('of one'))
      a2.connection.send(mail('of two'))
      for (const member of [a1, a2]) await member.connection.flush()
      for (const member of [a1, a2, b1, b2]) await member.connection.poll()
      deepStrictEqual(b1.received.map(({ message }) => message), [...sent, ...sent, mail('of one')])
      deepStrictEqual(b2.received, [{ message: mail('of two'), from: 'a' }])
      deepStrictEqual([a1.received, a2.received], [[], []])
      await close(a1, b1, a2, b2)
    },
  },
  {
    name: '[B1.8] counts no connection of another namespace as a peer, and none is affected when one closes',
    async run(harness) {
      const bus = await harness.bus()
      const [alone, other] = [await connect(bus(), 'a', 'one'), await connect(bus(), 'a', 'two')]
      for (const { connection } of [alone, other]) connection.send({ kind: 'hello' })
      for (const { connection } of [alone, other]) await connection.flush()
      for (const { connection } of [alone, other]) await connection.poll()
      ok(!alone.connection.hasPeers && !other.connection.hasPeers)
      const peer = await connect(bus(), 'b', 'two')
      await introduce(other, peer)
      ok(other.connection.hasPeers && !alone.connection.hasPeers)
      await close(alone)
      peer.connection.send(mail('after'), 'a')
      await until(other, 'after')
      deepStrictEqual(alone.received, [])
      ok(other.connection.hasPeers)
      await close(other, peer)
    },
  },
]

export const busCases: BusCase[] = [...delivery, ...namespaces]

import { deepStrictEqual, ok } from 'node:assert'
import type { Bus, Seat } from '../contract.ts'
import type { BusMessage } from '../message.ts'
import type { BusCase } from './case.ts'

interface Member {
  name: string
  seat: Seat
  heard: Array<{ message: BusMessage; from: string }>
  /** Resolves when so many messages were heard. */
  has(count: number): Promise<void>
}

async function join(bus: Bus, name: string): Promise<Member> {
  const heard: Member['heard'] = []
  const waiting: Array<{ count: number; resolve(): void }> = []
  const seat = await bus.join(name, {
    hear(message, from) {
      heard.push({ message, from })
      for (const { count, resolve } of waiting) if (heard.length >= count) resolve()
    },
    lost() {},
    attentive: () => true,
  })
  const has = (count: number) => new Promise<void>((resolve) => {
    if (heard.length >= count) resolve()
    else waiting.push({ count, resolve })
  })
  return { name, seat, heard, has }
}

/** Makes each known to the others, then forgets what that took. */
async function meet(...members: Member[]): Promise<void> {
  for (const { seat } of members) seat.say({ kind: 'hello' })
  const last = members.at(-1)
  const first = members[0]
  if (last && first && last !== first) {
    last.seat.say({ kind: 'mail', threadId: 'met' })
    await Promise.all(members.slice(0, -1).map((member) => until(member, 'met')))
    first.seat.say({ kind: 'mail', threadId: 'met too' })
    await Promise.all(members.slice(1).map((member) => until(member, 'met too')))
  }
  for (const member of members) member.heard.length = 0
}

async function until(member: Member, threadId: string): Promise<void> {
  for (let count = 1; !member.heard.some(({ message }) => 'threadId' in message && message.threadId === threadId); count++) {
    await member.has(Math.max(count, member.heard.length + 1))
  }
}

const mail = (threadId: string): BusMessage => ({ kind: 'mail', threadId })
const threads = (member: Member, from?: Member) =>
  member.heard.flatMap((heard) => (heard.message.kind === 'mail' && (!from || heard.from === from.name) ? [heard.message.threadId] : []))

async function leave(...members: Member[]): Promise<void> {
  for (const { seat } of members) await seat.leave()
}

export const busCases: BusCase[] = [
  {
    name: '[B1.1] carries what one member says to all others, in that order and once, and never back',
    async run(harness) {
      const bus = await harness.bus()
      const [a, b, c] = [await join(bus(), 'a'), await join(bus(), 'b'), await join(bus(), 'c')]
      await meet(a, b, c)
      const said = Array.from({ length: 300 }, (_, index) => `a${index}`)
      for (const threadId of said) a.seat.say(mail(threadId))
      await Promise.all([until(b, 'a299'), until(c, 'a299')])
      c.seat.say(mail('last'))
      await Promise.all([until(a, 'last'), until(b, 'last')])
      deepStrictEqual(threads(b, a), said)
      deepStrictEqual(threads(c, a), said)
      deepStrictEqual(threads(a), ['last'])
      await leave(a, b, c)
    },
  },
  {
    name: '[B1.2] carries what is addressed to a member to that one alone',
    async run(harness) {
      const bus = await harness.bus()
      const [a, b, c] = [await join(bus(), 'a'), await join(bus(), 'b'), await join(bus(), 'c')]
      await meet(a, b, c)
      a.seat.say(mail('for b'), 'b')
      a.seat.say(mail('for nobody'), 'nobody')
      a.seat.say(mail('for all'))
      await Promise.all([until(b, 'for all'), until(c, 'for all')])
      deepStrictEqual(threads(b), ['for b', 'for all'])
      deepStrictEqual(threads(c), ['for all'])
      await leave(a, b, c)
    },
  },
  {
    name: '[B1.3] takes messages as they are, large and small, and copies them',
    async run(harness) {
      const bus = await harness.bus()
      const [a, b] = [await join(bus(), 'a'), await join(bus(), 'b')]
      await meet(a, b)
      const text = 'ä 🚂 \u0000 " \\ '.repeat(20_000)
      const message: BusMessage = { kind: 'events', threadId: 't', epoch: 3, first: 1, events: [{ type: 'chunk', chunk: { type: 'text-delta', runId: 'r', from: 'AGENT', payload: { id: '1', text }, cursor: '3.1' } }] }
      a.seat.say(message)
      const before = structuredClone(message)
      message.threadId = 'changed'
      await b.has(1)
      deepStrictEqual(b.heard[0]?.message, before)
      await leave(a, b)
    },
  },
  {
    name: '[B1.6] lets whoever listens hear at once what was said and settled before',
    async run(harness) {
      const bus = await harness.bus()
      const [a, b] = [await join(bus(), 'a'), await join(bus(), 'b')]
      await meet(a, b)
      for (let round = 1; round <= 20; round++) {
        a.seat.say(mail(`t${round}`))
        await a.seat.settle()
        b.seat.listen()
        deepStrictEqual(threads(b).at(-1), `t${round}`)
        deepStrictEqual(b.heard.length, round)
      }
      await leave(a, b)
    },
  },
  {
    name: '[B1.4] is silent to whoever left, and nothing is said before somebody came',
    async run(harness) {
      const bus = await harness.bus()
      const a = await join(bus(), 'a')
      ok(!a.seat.company)
      a.seat.say(mail('to nobody'))
      const [b, c] = [await join(bus(), 'b'), await join(bus(), 'c')]
      await meet(a, b, c)
      ok(a.seat.company && b.seat.company)
      await leave(c)
      a.seat.say(mail('one'))
      await until(b, 'one')
      deepStrictEqual(c.heard, [])
      deepStrictEqual(threads(b), ['one'])
      await leave(a, b)
    },
  },
]

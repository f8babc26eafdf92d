import { settledMemory } from '../../harness/settled-memory.mjs'
import { expect, importHeed, input, report, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { newDatabase } from '../../threads/database.mjs'

const { Agent, Heed } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')
const { Channel, Contacts, directChannel } = await importHeed('channels')
const names = ['100', '10,000']
const fitting = 10

/** A Heed with so many open watches, of which ten fit one message in ten each. */
async function opened(size) {
  let judged = 0
  const model = instantModel(() => textParts(1), { onCall: () => judged++ })
  const agent = new Agent({ id: 'assistant', model, watches: { model, maxOpen: size } })
  const adapter = directChannel({ kind: 'sms' })
  const contacts = new Contacts(Array.from({ length: 100 }, (_, nth) => ({ id: `contact-${nth}`, addresses: [{ kind: 'sms', address: `+1555${1_000 + nth}` }] })))
  const channel = new Channel({ id: 'phone', adapter, resourceId: 'ada', contacts })
  const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: newDatabase() }), channels: [channel], notifications: { dispatch: { enabled: false } } })
  await heed.start()
  const base = { description: 'a message', mode: 'continuous', expected_channels: ['sms'], max_evaluations: 1_000 }
  for (let nth = 0; nth < size;) {
    const group = []
    for (; group.length < 500 && nth < size; nth++) {
      const expected = nth < fitting
        ? { expected_contacts: [`contact-${nth}`] }
        : [{ expected_channels: ['telegram'] }, { expected_contacts: [`stranger-${nth}`] }, { expected_categories: [`label_${nth}`] }, { expected_categories: ['travel', 'auth'] }][nth % 4]
      group.push(agent.awaitSignal({ ...base, ...expected }, { id: `w-${nth}`, threadId: `thread-${nth % 100}`, resourceId: 'ada' }))
    }
    await Promise.all(group)
  }
  let sent = 0
  return {
    heed,
    judged: () => judged,
    async offer(count) {
      const messages = Array.from({ length: count }, () => {
        const nth = sent++
        return { providerId: `m-${nth}`, text: 'The meeting is moved to Thursday, in the room on the first floor.', sender: { address: `+1555${1_000 + (nth % 100)}`, verified: true } }
      })
      const stop = stopwatch()
      await adapter.deliver(...messages)
      while ((await heed.tick({ limit: 1_000 })).watches > 0);
      return stop()
    },
  }
}

const measured = {}
const worlds = []
for (const [index, size] of input.sizes.entries()) {
  const before = settledMemory()
  const world = await opened(size)
  worlds.push({ name: names[index], world, cpu: 0, wall: 0, memory: (settledMemory() - before) / 1e6 })
}
for (let turn = 0; turn < input.warmup + input.turns; turn++) {
  for (const one of turn % 2 === 0 ? worlds : worlds.toReversed()) {
    const { cpu, wall } = await one.world.offer(input.batch)
    if (turn < input.warmup) continue
    one.cpu += cpu
    one.wall += wall
  }
}
const count = input.turns * input.batch
for (const { name, world, cpu, wall } of worlds) {
  const offered = (input.warmup + input.turns) * input.batch
  expect(`judged with ${name} watches`, world.judged(), Math.ceil(offered / 100) * fitting)
  Object.assign(measured, { [`cpu, ${name}`]: (cpu * 1_000) / count, [`rate, ${name}`]: count / (wall / 1_000), [`judged, ${name}`]: world.judged() / offered })
}
measured['cpu, 10,000 over 100'] = measured['cpu, 10,000'] / measured['cpu, 100']
measured['memory, 10,000 more than 100'] = worlds[1].memory - worlds[0].memory
report(measured)

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { median } from '../../harness/median.mjs'
import { input, report } from '../../harness/side.mjs'
import { openInbox, practise } from './inbox.mjs'

const names = ['1,000', '100,000', '1,000,000']
const counts = { ingress: input.ingress, dispatch: input.due }
const measured = {}

/** A database with so many records, made by a process of its own, which also says how much memory it took. */
async function filled(size, name) {
  const child = fork(join(import.meta.dirname, 'waiting.mjs'), [JSON.stringify({ ...input, size })], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const [{ url, nextDue, memory }] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the inbox of ${size} ended with ${code}`))),
  ])
  Object.assign(measured, { [`next due, ${name}`]: nextDue, [`memory, ${name}`]: memory })
  return { name, url, samples: { ingress: [], dispatch: [] } }
}

/** How much longer the turns of one took than those of the other beside them: the median. A busy machine makes both longer. */
function beside(one, other, what) {
  return median(one.samples[what].map(({ wall }, turn) => wall / other.samples[what][turn].wall))
}

await practise()
const inboxes = []
for (const [index, size] of input.sizes.entries()) inboxes.push(await filled(size, names[index]))
for (const inbox of inboxes) inbox.world = await openInbox(inbox.url, 10_000_000)
for (let turn = 0; turn < input.warmup + input.turns; turn++) {
  for (const what of Object.keys(counts)) {
    // Back and forth: the first inbox of one turn is the last of the next.
    for (const { world, samples } of turn % 2 === 0 ? inboxes : inboxes.toReversed()) {
      const sample = await world[what]()
      if (turn >= input.warmup) samples[what].push(sample)
    }
  }
}

for (const { name, samples } of inboxes) {
  for (const [what, turns] of Object.entries(samples)) {
    measured[`${what}/s, ${name}`] = counts[what] / (median(turns.map(({ wall }) => wall)) / 1_000)
    measured[`${what} cpu, ${name}`] = (turns.reduce((sum, { cpu }) => sum + cpu, 0) * 1_000) / (counts[what] * turns.length)
  }
}
const large = inboxes.at(-1)
for (const other of inboxes.slice(0, -1)) {
  for (const what of Object.keys(counts)) {
    measured[`${what} cpu, ${large.name} over ${other.name}`] = measured[`${what} cpu, ${large.name}`] / measured[`${what} cpu, ${other.name}`]
    measured[`${what} rate, ${other.name} over ${large.name}`] = beside(large, other, what)
  }
  measured[`memory, ${large.name} over ${other.name}`] = measured[`memory, ${large.name}`] / measured[`memory, ${other.name}`]
}
report(measured)

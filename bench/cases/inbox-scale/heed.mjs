import { fork } from 'node:child_process'
import { join } from 'node:path'
import { median } from '../../harness/median.mjs'
import { input, report } from '../../harness/side.mjs'

/** A process with an inbox of this size, that does what it is told and answers with numbers. */
function start(size) {
  const child = fork(join(import.meta.dirname, 'waiting.mjs'), [JSON.stringify({ ...input, size })], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  let settle = Promise.withResolvers()
  child.on('message', (answer) => settle.resolve(answer))
  child.on('exit', (code) => settle.reject(new Error(`the inbox of ${size} ended with ${code}`)))
  return {
    size, child, samples: { ingress: [], dispatch: [] },
    ready: settle.promise,
    ask(what) {
      settle = Promise.withResolvers()
      child.send(what)
      return settle.promise
    },
  }
}

/** How much longer the turns of one took than those of the other beside them: the median. A busy machine makes both longer. */
function beside(one, other, what) {
  return median(one.samples[what].map(({ wall }, turn) => wall / other.samples[what][turn].wall))
}

const inboxes = []
for (const size of input.sizes) {
  const inbox = start(size)
  await inbox.ready
  inboxes.push(inbox)
}
for (let turn = 0; turn < input.warmup + input.turns; turn++) {
  for (const what of ['ingress', 'dispatch']) {
    // Back and forth: whoever comes first in one turn comes last in the next.
    for (const inbox of turn % 2 === 0 ? inboxes : inboxes.toReversed()) {
      const sample = await inbox.ask(what)
      if (turn >= input.warmup) inbox.samples[what].push(sample)
    }
  }
}
const measured = {}
const names = ['1,000', '100,000', '1,000,000']
const counts = { ingress: input.ingress, dispatch: input.due }
for (const [index, inbox] of inboxes.entries()) {
  const name = names[index]
  for (const [what, samples] of Object.entries(inbox.samples)) {
    measured[`${what}/s, ${name}`] = counts[what] / (median(samples.map(({ wall }) => wall)) / 1_000)
    measured[`${what} cpu, ${name}`] = (samples.reduce((sum, { cpu }) => sum + cpu, 0) * 1_000) / (counts[what] * samples.length)
  }
  const { nextDue, memory } = await inbox.ask('look')
  Object.assign(measured, { [`next due, ${name}`]: nextDue, [`memory, ${name}`]: memory })
  inbox.child.disconnect()
}
const [small, middle, large] = names
const [fewest, some, most] = inboxes
const compared = {}
for (const [name, inbox] of [[small, fewest], [middle, some]]) {
  for (const what of Object.keys(counts)) {
    compared[`${what} cpu, ${large} over ${name}`] = measured[`${what} cpu, ${large}`] / measured[`${what} cpu, ${name}`]
    compared[`${what} rate, ${name} over ${large}`] = beside(most, inbox, what)
  }
  compared[`memory, ${large} over ${name}`] = measured[`memory, ${large}`] / measured[`memory, ${name}`]
}
report({ ...measured, ...compared })

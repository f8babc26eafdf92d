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

/** Whatever else the machine does makes a turn longer and never shorter: the median of the shortest four. */
function leastDisturbed(walls) {
  return median(walls.toSorted((one, other) => one - other).slice(0, 4))
}

const inboxes = []
for (const size of input.sizes) {
  const inbox = start(size)
  await inbox.ready
  inboxes.push(inbox)
}
for (let block = 0; block < input.warmup + input.blocks; block++) {
  for (const what of ['ingress', 'dispatch']) {
    for (const inbox of inboxes) {
      const sample = await inbox.ask(what)
      if (block >= input.warmup) inbox.samples[what].push(sample)
    }
  }
}
const measured = {}
const names = ['1,000', '100,000', '1,000,000']
for (const [index, inbox] of inboxes.entries()) {
  const name = names[index]
  const counts = { ingress: input.ingress, dispatch: input.due }
  for (const [what, samples] of Object.entries(inbox.samples)) {
    measured[`${what}/s, ${name}`] = counts[what] / (leastDisturbed(samples.map(({ wall }) => wall)) / 1_000)
    measured[`${what} cpu, ${name}`] = (samples.reduce((sum, { cpu }) => sum + cpu, 0) * 1_000) / (counts[what] * samples.length)
  }
  const { nextDue, memory } = await inbox.ask('look')
  Object.assign(measured, { [`next due, ${name}`]: nextDue, [`memory, ${name}`]: memory })
  inbox.child.disconnect()
}
const [small, middle, large] = names
report({
  ...measured,
  'ingress cpu, 1,000,000 over 1,000': measured[`ingress cpu, ${large}`] / measured[`ingress cpu, ${small}`],
  'ingress rate, 1,000 over 1,000,000': measured[`ingress/s, ${small}`] / measured[`ingress/s, ${large}`],
  'ingress cpu, 1,000,000 over 100,000': measured[`ingress cpu, ${large}`] / measured[`ingress cpu, ${middle}`],
  'ingress rate, 100,000 over 1,000,000': measured[`ingress/s, ${middle}`] / measured[`ingress/s, ${large}`],
  'dispatch cpu, 1,000,000 over 100,000': measured[`dispatch cpu, ${large}`] / measured[`dispatch cpu, ${middle}`],
  'dispatch rate, 100,000 over 1,000,000': measured[`dispatch/s, ${middle}`] / measured[`dispatch/s, ${large}`],
  'memory, 1,000,000 over 100,000': measured[`memory, ${large}`] / measured[`memory, ${middle}`],
  'dispatch cpu, 1,000,000 over 1,000': measured[`dispatch cpu, ${large}`] / measured[`dispatch cpu, ${small}`],
  'dispatch rate, 1,000 over 1,000,000': measured[`dispatch/s, ${small}`] / measured[`dispatch/s, ${large}`],
  'memory, 1,000,000 over 1,000': measured[`memory, ${large}`] / measured[`memory, ${small}`],
})

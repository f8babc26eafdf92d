import { setTimeout as sleep } from 'node:timers/promises'
import { median } from '../../harness/median.mjs'
import { expect, importHeed, input, report, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { newDatabase } from '../../threads/database.mjs'
import { follow } from '../../threads/follow.mjs'

const { Agent, Heed } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')
const { createCostScorer, createKeywordCoverageScorer, createLatencyScorer, createScorer, createToolCallAccuracyScorer, textOf } = await importHeed('scorers')

const answer = textParts(10)
const instant = instantModel(() => answer)
/** The same model, whose parts come within 100 ms. */
const paced = {
  ...instant,
  async doStream(options) {
    const { stream, ...rest } = await instant.doStream(options)
    const wait = new TransformStream({
      async transform(part, controller) {
        if (part.type === 'text-delta') await sleep(10)
        controller.enqueue(part)
      },
    })
    return { ...rest, stream: stream.pipeThrough(wait) }
  },
}

const short = createScorer({ id: 'short', description: 'The answer is short.', type: 'agent' }).generateScore(({ run }) => (textOf(run.output).length < 1_000 ? 1 : 0))
const five = Object.fromEntries([
  createKeywordCoverageScorer(), createLatencyScorer({ targetMs: 1_000, limitMs: 10_000 }), createToolCallAccuracyScorer({ expectedTools: ['weather'] }),
  createCostScorer({ prices: { input: 1, output: 1 }, target: 1, limit: 10 }), short,
].map((scorer) => [scorer.id, { scorer, sampling: { type: 'ratio', rate: 1 } }]))

async function measured(model, { warmup, blocks, turns }) {
  // Two agents of each kind: what is made first has the better places in memory.
  const agents = {}
  for (const kind of ['none', 'five', 'five', 'none']) {
    const id = kind in agents ? `${kind}-again` : kind
    agents[id] = new Agent({ id, instructions: 'You answer.', model, ...(kind === 'five' ? { scorers: five } : {}) })
  }
  const heed = new Heed({ agents, storage: new LibSQLStore({ url: newDatabase() }) })
  await heed.start()
  const sides = []
  for (const [name, agent] of Object.entries(agents)) {
    const target = { threadId: name, resourceId: 'resource' }
    sides.push({ kind: name.replace('-again', ''), agent, target, thread: follow(await agent.subscribeToThread(target)) })
  }
  const scored = async () => {
    while ((await heed.listScores({ state: 'pending', limit: 1 })).scores.length > 0) await sleep(50)
  }
  const walls = { none: [], five: [] }
  const cpus = { none: 0, five: 0 }
  for (let block = -warmup; block < blocks; block++) {
    const start = Math.abs(Math.floor(block / 2)) % sides.length
    const order = [...sides.slice(start), ...sides.slice(0, start)]
    for (const { kind, agent, target, thread } of block % 2 === 0 ? order : order.toReversed()) {
      const stop = stopwatch()
      for (let turn = 0; turn < turns; turn++) {
        const finished = thread.finish()
        const began = performance.now()
        agent.sendMessage(`Which train goes to station ${turn}?`, target)
        await finished
        if (block >= 0) walls[kind].push(performance.now() - began)
      }
      await scored()
      if (block >= 0) cpus[kind] += stop().cpu
    }
  }
  let last
  let count = 0
  do {
    const page = await heed.listScores({ limit: 100, ...(last === undefined ? {} : { before: last }) })
    count += page.scores.filter(({ state, attempts }) => state === 'scored' && attempts === 1).length
    last = page.next
  } while (last !== undefined)
  expect('scores', count, 2 * 5 * (warmup + blocks) * turns)
  await heed.close()
  return { none: median(walls.none), five: median(walls.five), cpu: { none: cpus.none / walls.none.length, five: cpus.five / walls.five.length } }
}

const slow = await measured(paced, input)
const quick = await measured(instant, input.instant)
report({
  'turn, none': slow.none, 'turn, five': slow.five, 'turn, five over none': slow.five / slow.none,
  'instant turn, none': quick.none, 'instant turn, five': quick.five, 'instant turn, five over none': quick.five / quick.none,
  'cpu, none': quick.cpu.none, 'cpu, five': quick.cpu.five, 'cpu, five over none': quick.cpu.five / quick.cpu.none,
})

import { createHash } from 'node:crypto'
import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { createScorer, textOf } from '../../src/scorers/index.ts'
import { SqlScoreStore } from '../../src/store/sql/scores/scores.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/scripted-model.ts'
import { shiftedClock } from '../watch/shifted-clock.ts'

/**
 * One process of the campaign of kills of scores. It asks an agent on some threads, its share of them where it is one of several, and scores
 * what has ended. `killAt`: it kills itself at the so manieth place, before or after a write of the store, or within a scorer. 0: it goes to
 * the end, and reports what is wrong then.
 */
const { file, shift, killAt, count, nth = 0, processes = 1 } = JSON.parse(process.argv[2] ?? '{}') as Plan

export interface Plan {
  file: string
  shift: number
  killAt: number
  /** How many runs there are to be. */
  count: number
  nth?: number
  processes?: number
}

export interface Report {
  wrong: string[]
  runs: number
  scores: number
  repeated: number
}

let places = 0
function reached(): void {
  places += 1
  if (killAt > 0 && places === killAt) process.kill(process.pid, 'SIGKILL')
}

async function around<T>(write: () => Promise<T>): Promise<T> {
  reached()
  const result = await write()
  reached()
  return result
}

class FragileScores extends SqlScoreStore {
  override claim(...args: Parameters<SqlScoreStore['claim']>): ReturnType<SqlScoreStore['claim']> {
    return around(() => super.claim(...args))
  }

  override settle(...args: Parameters<SqlScoreStore['settle']>): ReturnType<SqlScoreStore['settle']> {
    return around(() => super.settle(...args))
  }
}

class FragileStore extends LibSQLStore {
  override readonly scores = new FragileScores(this)

  override commitStep(...args: Parameters<LibSQLStore['commitStep']>): ReturnType<LibSQLStore['commitStep']> {
    return around(() => super.commitStep(...args))
  }
}

const scorer = (id: string) => createScorer({ id, description: 'd', type: 'agent' }).generateScore(({ run }) => {
  reached()
  return textOf(run.output).length
})
const clock = shiftedClock(shift)
const answer = 'By train, from the main station.'
const agent = new Agent({
  id: 'guide', model: scriptedModel(() => answer),
  scorers: {
    tenth: { scorer: scorer('tenth'), sampling: { type: 'ratio', rate: 0.1 } }, half: { scorer: scorer('half'), sampling: { type: 'ratio', rate: 0.5 } },
    never: { scorer: scorer('never'), sampling: { type: 'ratio', rate: 0 } }, always: { scorer: scorer('always'), filter: { threadId: { ne: 'thread-0' } } },
  },
})
const heed = new Heed({
  agents: { agent }, storage: new FragileStore({ url: `file:${file}`, clock }), clock, logger: silentLogger, notifications: { dispatch: { enabled: false } },
})
await heed.start()
const threads = Array.from({ length: count }, (_, index) => `thread-${index}`)
const resourceId = 'user-1'
const limit = Date.now() + 120_000
const own = threads.filter((_, index) => index % processes === nth)
for (let from = 0; from < own.length; from += 8) {
  // Sent twice, it is one message: an earlier process may have sent it.
  await Promise.all(own.slice(from, from + 8).map((threadId) =>
    agent.sendSignal({ id: `question of ${threadId}`, type: 'user', contents: 'How?' }, { threadId, resourceId }).outcome))
  await heed.tick()
}
const all = count * 3
const ended = () => agent.threads().store.listRuns({ limit: all })
while (Date.now() < limit) {
  await heed.tick()
  const { scores } = await heed.listScores({ limit: all })
  const runs = (await ended())
  if (runs.length >= threads.length && runs.every(({ status }) => status === 'finished') && scores.every(({ state }) => state === 'scored')) break
  await new Promise((resolve) => void setTimeout(resolve, 20))
}

/** As the documentation says, and not as the code does it. */
function isSampled(runId: string, rate: number): boolean {
  return Number.parseInt(createHash('sha256').update(runId).digest('hex').slice(0, 12), 16) / 2 ** 48 < rate
}

if (killAt === 0) {
  const runs = (await ended()).filter(({ status }) => status === 'finished')
  const { scores } = await heed.listScores({ limit: all })
  const counts = new Map<string, number>()
  for (const { runId, scorerId } of scores) counts.set(`${scorerId} of ${runId}`, (counts.get(`${scorerId} of ${runId}`) ?? 0) + 1)
  const wanted = runs.flatMap(({ runId, threadId }) => [
    ...(isSampled(runId, 0.1) ? [`tenth of ${runId}`] : []), ...(isSampled(runId, 0.5) ? [`half of ${runId}`] : []), ...(threadId === 'thread-0' ? [] : [`always of ${runId}`]),
  ])
  const wrong = [
    ...(runs.length === threads.length ? [] : [`${runs.length} runs`]),
    ...wanted.flatMap((name) => (counts.get(name) === 1 ? [] : [`${name}: ${counts.get(name) ?? 0} scores`])),
    ...[...counts.keys()].filter((name) => !new Set(wanted).has(name)).map((name) => `${name}: not in the sample`),
    ...scores.flatMap(({ runId, state, score }) => (state === 'scored' && score === answer.length ? [] : [`${runId}: ${state} ${score}`])),
  ]
  const report: Report = { wrong, runs: runs.length, scores: scores.length, repeated: scores.filter(({ attempts }) => attempts > 1).length }
  process.stdout.write(JSON.stringify(report))
}
await heed.close()

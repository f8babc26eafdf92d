import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { createScorer, textOf } from '../../src/scorers/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/scripted-model.ts'
import { shiftedClock } from '../watch/shifted-clock.ts'

/**
 * One process of the campaign of kills of scores. It asks an agent on some threads, and scores what has ended. `killAt`: it kills itself at
 * the so manieth place, before or after a write of the store, or within a scorer. 0: it goes to the end, and reports what is wrong then.
 */
const { file, shift, killAt } = JSON.parse(process.argv[2] ?? '{}') as { file: string; shift: number; killAt: number }

export interface Report {
  wrong: string[]
  scores: number
  repeated: number
}

let places = 0
function reached(): void {
  places += 1
  if (killAt > 0 && places === killAt) process.kill(process.pid, 'SIGKILL')
}

class FragileStore extends LibSQLStore {
  async #around<T>(write: () => Promise<T>): Promise<T> {
    reached()
    const result = await write()
    reached()
    return result
  }

  override commitStep(...args: Parameters<LibSQLStore['commitStep']>): ReturnType<LibSQLStore['commitStep']> {
    return this.#around(() => super.commitStep(...args))
  }

  override claimScores(...args: Parameters<LibSQLStore['claimScores']>): ReturnType<LibSQLStore['claimScores']> {
    return this.#around(() => super.claimScores(...args))
  }

  override settleScore(...args: Parameters<LibSQLStore['settleScore']>): ReturnType<LibSQLStore['settleScore']> {
    return this.#around(() => super.settleScore(...args))
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
  scorers: { long: { scorer: scorer('long') }, half: { scorer: scorer('half'), sampling: { type: 'ratio', rate: 0.5 } }, never: { scorer: scorer('never'), sampling: { type: 'ratio', rate: 0 } } },
})
const heed = new Heed({
  agents: { agent }, storage: new FragileStore({ url: `file:${file}`, clock }), clock, logger: silentLogger, notifications: { dispatch: { enabled: false } },
})
await heed.start()
const threads = Array.from({ length: 6 }, (_, index) => `thread-${index}`)
const resourceId = 'user-1'
const limit = Date.now() + 60_000
for (const [index, threadId] of threads.entries()) {
  // Sent twice, it is one message: an earlier process may have sent it.
  const message = { id: `question-${index}`, type: 'user', contents: 'How?' } as const
  await agent.sendSignal(message, { threadId, resourceId }).outcome
  if (index % 2 === 1) await heed.tick()
}
const ended = () => agent.threads().store.listRuns({ limit: 99 })
while (Date.now() < limit) {
  await heed.tick()
  const { scores } = await heed.listScores({ limit: 100 })
  const runs = (await ended())
  if (runs.length >= threads.length && runs.every(({ status }) => status === 'finished') && scores.every(({ state }) => state === 'scored')) break
  await new Promise((resolve) => void setTimeout(resolve, 20))
}
if (killAt === 0) {
  const runs = (await ended()).filter(({ status }) => status === 'finished')
  const { scores } = await heed.listScores({ limit: 100 })
  const of = (runId: string, scorerId: string) => scores.filter((score) => score.runId === runId && score.scorerId === scorerId)
  const wrong = [
    ...(runs.length === threads.length ? [] : [`${runs.length} runs`]),
    ...runs.flatMap(({ runId }) => (of(runId, 'long').length === 1 ? [] : [`run ${runId} has ${of(runId, 'long').length} scores`])),
    ...runs.flatMap(({ runId }) => (of(runId, 'half').length <= 1 && of(runId, 'never').length === 0 ? [] : [`run ${runId} is not a sample`])),
    ...scores.flatMap(({ runId, state, score }) => (state === 'scored' && score === answer.length ? [] : [`${runId}: ${state} ${score}`])),
    ...scores.flatMap(({ runId }) => (runs.some((run) => run.runId === runId) ? [] : [`a score of ${runId}, which did not finish`])),
  ]
  const report: Report = { wrong, scores: scores.length, repeated: scores.filter(({ attempts }) => attempts > 1).length }
  process.stdout.write(JSON.stringify(report))
}
await heed.close()

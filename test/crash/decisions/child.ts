import { Heed } from '../../../src/index.ts'
import { isHeedError } from '../../../src/base/errors.ts'
import { apiKeys } from '../../../src/http/auth/principal.ts'
import { createHandler } from '../../../src/http/handler.ts'
import type { ThreadStore } from '../../../src/store/contract/threads.ts'
import { Chance } from '../../../src/store/conformance/fixture.ts'
import { LibSQLStore } from '../../../src/store/sqlite/store.ts'
import { EffectFile } from '../effects.ts'
import { fastClock } from '../fast-clock.ts'
import { JournalWriter, readJournals } from '../journal.ts'
import { KillSwitch, underFire, type KillPlan } from '../kill-points.ts'
import { mark, pause } from '../restless-model.ts'
import { Deciders } from './deciders.ts'
import { office, resourceId, type Focus } from './office.ts'

/** What the parent tells a process when it starts it. */
export interface ChildPlan {
  folder: string
  database: string
  slot: number
  life: number
  threads: string[]
  seed: number
  speed: number
  origin: number
  /** How many messages it sends. */
  sends: number
  patience: number
  /** One of so many requests is aborted instead, and one of three tools that write; none where it is 0. */
  aborts: number
  /** One of so many answers of the store to decisions is lost; none where it is 0. */
  losses: number
  focus?: Focus
  kill?: KillPlan
  /** What it does at once when a decision was accepted, the how manieth. */
  after?: { what: 'close' | 'kill'; nth: number }
  /** It closes while it stores that calls begin, the how manieth time. */
  closeAtBegin?: number
}

const plan = JSON.parse(process.argv[2] ?? '') as ChildPlan
const { slot, life, folder, threads } = plan
const name = `${slot}.${life}`
const before = readJournals(folder).filter((journal) => journal.slot === slot && journal.life < life)
const journal = new JournalWriter(folder, slot, life)
const effects = new EffectFile(folder, slot, life, plan.database)
const kill = new KillSwitch(plan.kill)
const chance = new Chance(plan.seed)
journal.write({ note: 'up', pid: process.pid })
process.once('disconnect', () => process.exit())

const trouble = (message: string, fields?: object) => journal.write({ note: 'trouble', what: `${message} ${JSON.stringify(fields ?? {})}` })
const clock = fastClock(plan.speed, plan.origin)
const store = underFire(unreliable(new LibSQLStore({ url: `file:${plan.database}`, clock })), kill, journal)
const agents = office({ chance, journal, effects, kill, name, focus: plan.focus, onWriting, onCalling })
const heed = new Heed({ agents, storage: store, clock, logger: { debug() {}, info() {}, warn: trouble, error: trouble } })
const keys = { ann: `the-key-of-ann-in-${slot}`, bob: `the-key-of-bob-in-${slot}` }
const principal = (who: string) => ({ id: `${who}@${slot}`, resources: [resourceId] })
const http = createHandler(heed, { auth: apiKeys({ [keys.ann]: principal('ann'), [keys.bob]: principal('bob') }) })
let accepted = 0
let begins = 0
let ending: Promise<void> | undefined
const deciders = new Deciders({ office: agents, chance, journal, name, place: slot, before, http, keys, patience: plan.patience, aborts: plan.aborts, onAccepted })

process.on('message', (what) => {
  if (what === 'stop') void end()
})
try {
  await heed.start()
  process.send?.('started')
  await Promise.all([send(), deciders.run()])
} catch (error) {
  // It may be asked to end while it starts.
  if (!ending || !isHeedError(error) || error.code !== 'closed') throw error
}

/** What an application does next when a decision was accepted: nothing, or it ends, or it is killed. */
function onAccepted(): void {
  if (!plan.after || ++accepted !== plan.after.nth) return
  if (plan.after.what === 'kill') process.kill(process.pid, 'SIGKILL')
  void end()
}

function end(): Promise<void> {
  ending ??= close()
  return ending
}

async function close(): Promise<void> {
  journal.write({ note: 'stopping' })
  deciders.stop()
  http.close()
  await heed.close()
  journal.write({ note: 'closed' })
  effects.close()
  if (process.connected) process.disconnect()
}

async function send(): Promise<void> {
  for (let index = 0; index < plan.sends && !ending; index++) {
    const thread = chance.pick(threads)
    const id = `${name}.${index}`
    journal.write({ note: 'send', thread, id, kind: 'queue' })
    try {
      await agents.chief.queueMessage({ contents: `Do ${mark(thread, id)}.`, id }, { threadId: thread, resourceId }).stored
      journal.write({ note: 'stored', thread, id })
    } catch (error) {
      journal.write({ note: 'refused', thread, id, why: isHeedError(error) ? error.code : String(error) })
    }
    await pause(chance.below(60))
  }
}

/** While one call of a step runs, another may wait for its approval: some such runs are aborted. */
function onWriting(thread: string, run: string): void {
  if (plan.aborts === 0 || !threads.includes(thread) || chance.below(2) === 0) return
  const abort = async () => {
    await pause(chance.below(25))
    journal.write({ note: 'aborts', thread, run })
    const { aborted } = await agents.chief.abortRun({ threadId: thread, resourceId, expectedRunId: run })
    journal.write({ note: 'aborted', thread, run, aborted })
  }
  abort().catch((error: unknown) => {
    if (!isHeedError(error) || error.code !== 'closed') trouble(`abortRun: ${String(error)}`)
  })
}

/** Another resource takes the ids that the thread of the agent below might have. */
async function onCalling(thread: string, toolCallId: string): Promise<void> {
  await Promise.all([`${thread}/${toolCallId}`, `child:${thread}/${toolCallId}`].map(async (threadId) => {
    const target = { threadId, resourceId: 'intruder', ifActive: { behavior: 'persist' }, ifIdle: { behavior: 'persist' } } as const
    try {
      await agents.chief.sendMessage({ contents: 'Mine.', id: `squat ${name}` }, target).stored
      journal.write({ note: 'squats', thread: threadId })
    } catch (error) {
      journal.write({ note: 'squats', thread: threadId, refused: isHeedError(error) ? error.code : String(error) })
    }
  }))
}

/** A store that notes which calls begin, and of which answers to decisions are lost, before the write or after it. */
function unreliable(sound: ThreadStore): ThreadStore {
  const commitStep: ThreadStore['commitStep'] = (fence, commit) => {
    if (commit.started?.length) {
      journal.write({ note: 'begins', thread: fence.threadId, calls: commit.started })
      if (++begins === plan.closeAtBegin) void end()
    }
    return sound.commitStep(fence, commit)
  }
  // The second attempt gets through: it is the last.
  const repeated = new Set<string>()
  const decide: ThreadStore['decide'] = async (...asked) => {
    const [, { id = '' }] = asked
    const loses = plan.losses > 0 && !repeated.has(id) && chance.below(plan.losses) === 0
    repeated.add(id)
    if (!loses) return sound.decide(...asked)
    const lost = chance.pick(['before', 'after'] as const)
    if (lost === 'after') await sound.decide(...asked)
    journal.write({ note: 'lost', when: lost })
    await pause(chance.below(30))
    throw new Error('the connection to the store was lost')
  }
  const changed: Partial<ThreadStore> = { commitStep, decide }
  return new Proxy(sound, {
    get(target, key) {
      const own: unknown = Reflect.get(changed, key)
      if (own) return own
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
    },
  })
}

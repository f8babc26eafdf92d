import type { BegunRun, Fence, StepCommit, ThreadStore } from '../../src/store/contract/threads.ts'
import { steadyNow, type JournalWriter } from './journal.ts'

/** Where a process may be ordered to kill itself. */
export const killPoints = [
  'accept:before', 'accept:after', 'flush:before', 'flush:after', 'claim:before', 'claim:after', 'begin:before', 'begin:after', 'takeover:after',
  'started:before', 'started:after', 'boundary:before', 'boundary:after', 'end:before', 'end:after', 'suspend:before', 'suspend:after',
  'decide:before', 'decide:after', 'beat:after', 'model:midway', 'tool:begun', 'tool:done', 'checkpoint', 'resign:before', 'open', 'migrate',
] as const

export type KillPoint = (typeof killPoints)[number]

export interface KillPlan {
  point: KillPoint
  /** The how manieth time it is reached. */
  nth: number
}

/** Kills this process at one of the points, if that was planned. */
export class KillSwitch {
  readonly plan: KillPlan | undefined
  #left: number

  constructor(plan?: KillPlan) {
    this.plan = plan
    this.#left = plan?.nth ?? 0
  }

  at(point: KillPoint): void {
    if (this.plan?.point === point && --this.#left === 0) process.kill(process.pid, 'SIGKILL')
  }
}

type Method<Name extends keyof ThreadStore> = ThreadStore[Name]

/** A store whose commits are noted and can be points of death. Everything else passes. */
export function underFire(store: ThreadStore, kill: KillSwitch, journal: JournalWriter): ThreadStore {
  const note = (what: string, fence: Fence, began: number, rows: string[] = []) => {
    journal.write({ note: 'written', thread: fence.threadId, epoch: fence.epoch, what, began, rows })
  }
  const accept: Method<'accept'> = async (sends) => {
    const began = steadyNow()
    kill.at('accept:before')
    const answers = await store.accept(sends)
    kill.at('accept:after')
    for (const [index, answer] of answers.entries()) {
      const send = sends[index]
      if (send && !('error' in answer)) journal.write({ note: 'accepted', thread: send.threadId, id: send.id })
      if ('fence' in answer && answer.fence) note('wake', answer.fence, began, 'begun' in answer ? answer.begun?.taken.map(({ id }) => id) : [])
    }
    return answers
  }
  const flush: Method<'flush'> = async () => {
    kill.at('flush:before')
    await store.flush()
    kill.at('flush:after')
  }
  const claim: Method<'claim'> = async (threadId, owner, agentIds, again) => {
    const began = steadyNow()
    kill.at('claim:before')
    const claimed = await store.claim(threadId, owner, agentIds, again)
    if (claimed) {
      kill.at('claim:after')
      if (claimed.takenOver) kill.at('takeover:after')
      note('claim', claimed.fence, began)
    }
    return claimed
  }
  const beginRun: Method<'beginRun'> = async (fence, windows) => {
    const began = steadyNow()
    kill.at('begin:before')
    const begun: BegunRun | null = await store.beginRun(fence, windows)
    kill.at('begin:after')
    note('begin', fence, began, begun?.taken.map(({ id }) => id))
    return begun
  }
  const commitStep: Method<'commitStep'> = async (fence, commit) => {
    const began = steadyNow()
    const point = pointOf(commit)
    kill.at(`${point}:before`)
    const committed = await store.commitStep(fence, commit)
    kill.at(`${point}:after`)
    note(commit.drain === true ? 'drain' : 'commit', fence, began, [...committed.rows, ...committed.taken].map(({ id }) => id))
    return committed
  }
  const decide: Method<'decide'> = async (scope, decision, owner) => {
    const began = steadyNow()
    kill.at('decide:before')
    const decided = await store.decide(scope, decision, owner)
    kill.at('decide:after')
    if (decided.fence) note('decide', decided.fence, began)
    return decided
  }
  const heartbeat: Method<'heartbeat'> = async (owner, until) => {
    await store.heartbeat(owner, until)
    kill.at('beat:after')
  }
  const resign: Method<'resign'> = (owner) => {
    kill.at('resign:before')
    return store.resign(owner)
  }
  const watched: Partial<ThreadStore> = { accept, flush, claim, beginRun, commitStep, decide, heartbeat, resign }
  return new Proxy(store, {
    get(target, key) {
      const own: unknown = Reflect.get(watched, key)
      if (own) return own
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
    },
  })
}

function pointOf(commit: StepCommit): 'started' | 'suspend' | 'end' | 'boundary' {
  if (commit.end?.status === 'suspended') return 'suspend'
  if (commit.end) return 'end'
  return commit.drain ? 'boundary' : 'started'
}

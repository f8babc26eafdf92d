import type { Agent, SendReceipt } from '../../src/index.ts'
import { isHeedError } from '../../src/base/errors.ts'
import type { Chance } from '../../src/store/conformance/fixture.ts'
import type { Journal, JournalWriter, SendKind } from './journal.ts'
import { mark, pause } from './restless-model.ts'

const kinds: readonly SendKind[] = ['message', 'message', 'message', 'queue', 'interrupt', 'interrupt', 'signal', 'persist']

export const resourceId = 'user-1'

/** How long all processes send the same id, so that some do it at the same time. */
const sharedMs = 300

interface LoadOptions {
  agent: Agent
  chance: Chance
  journal: JournalWriter
  /** Names the sends of this process. */
  name: string
  threads: readonly string[]
  /** Which threads are sent to at a time; all of them by default. */
  present?(): readonly string[]
  /** At most so many milliseconds between two sends. */
  pace?: number | undefined
  /** What earlier lives of this process left behind. */
  before: readonly Journal[]
  /** What a send counts as confirmed by. `accepted` is wrong, and there to show that it would be found out. */
  confirm?: 'stored' | 'accepted' | undefined
}

/** What a client would do: send, send again what was not confirmed, decide suspended calls. */
export class Load {
  readonly #options: LoadOptions
  readonly #shared = new Set<string>()
  #sent = 0
  #stopped = false
  #enough = false

  constructor(options: LoadOptions) {
    this.#options = options
  }

  /** Sends so many signals, one after the other or several at once. */
  async send(count: number): Promise<void> {
    const { chance, threads, name, before, present = () => threads, pace = 25 } = this.#options
    for (const { thread, id, kind } of unconfirmed(before)) void this.#one(thread, id, kind)
    while (!this.#stopped && !this.#enough && this.#sent < count) {
      const thread = chance.pick(present())
      const id = `${name}.${this.#sent++}`
      const kind = chance.pick(kinds)
      const done = this.#one(thread, id, kind)
      if (chance.below(8) === 0) void this.#one(thread, id, kind)
      if (chance.below(6) === 0) this.#everybodysSend()
      if (chance.below(3) === 0) await done
      await pause(chance.below(pace))
    }
  }

  /** A few more, each after what became of the one before, while no process dies: the chunks of that time have to arrive everywhere. */
  async calmly(count: number): Promise<void> {
    const { chance, threads, name } = this.#options
    for (let index = 0; index < count && !this.#stopped; index++) {
      const kind = chance.pick(kinds)
      await Promise.all([this.#one(chance.pick(threads), `${name}.calm.${index}`, kind), pause(chance.below(60))])
    }
  }

  /** Decides suspended calls, again and again. */
  async decide(patience: number): Promise<void> {
    const { agent, chance, journal } = this.#options
    while (!this.#stopped) {
      try {
        const { runs } = await agent.listSuspendedRuns()
        for (const { runId, threadId, toolCalls } of runs) {
          for (const { toolCallId, requiresApproval } of toolCalls) {
            const call = { resourceId, threadId, runId, toolCallId }
            if (chance.below(patience) > 0) continue
            if (!requiresApproval) await agent.sendStreamResume({ ...call, resumeData: { go: true } })
            else await agent.sendToolApproval({ ...call, approved: chance.below(4) > 0 })
          }
        }
      } catch (error) {
        // Another process was faster, or this one is about to close.
        if (!isHeedError(error)) throw error
        if (error.code !== 'run_not_suspended' && error.code !== 'closed') journal.write({ note: 'trouble', what: `decide: ${error.code} ${error.message}` })
      }
      await pause(10 + chance.below(30))
    }
  }

  /** Sends nothing more, and goes on deciding. */
  enough(): void {
    this.#enough = true
  }

  stop(): void {
    this.#stopped = true
  }

  /** The same id from all processes. */
  #everybodysSend(): void {
    const { threads, present = () => threads } = this.#options
    const slice = Math.floor(Date.now() / sharedMs)
    const now = present()
    const thread = now[slice % now.length]
    const id = `all.${slice}`
    if (thread === undefined || this.#shared.has(id)) return
    this.#shared.add(id)
    void this.#one(thread, id, 'message')
  }

  async #one(thread: string, id: string, kind: SendKind): Promise<void> {
    const { agent, journal, confirm = 'stored' } = this.#options
    journal.write({ note: 'send', thread, id, kind })
    try {
      const receipt = sendAs(agent, kind, thread, id)
      void receipt.outcome.then(({ action, runId, step, reason }) => {
        journal.write({ note: 'outcome', thread, id, action, ...(runId === undefined ? {} : { runId }), ...(step === undefined ? {} : { step }), ...(reason === undefined ? {} : { reason }) })
      })
      await (confirm === 'stored' ? receipt.stored : receipt.outcome)
      journal.write({ note: 'stored', thread, id })
    } catch (error) {
      journal.write({ note: 'refused', thread, id, why: isHeedError(error) ? error.code : String(error) })
    }
  }
}

export function sendAs(agent: Agent, kind: SendKind, threadId: string, id: string): SendReceipt {
  const contents = `Do ${mark(threadId, id)}.`
  const target = { threadId, resourceId }
  switch (kind) {
    case 'queue':
      return agent.queueMessage({ contents, id }, target)
    case 'interrupt':
      return agent.sendMessage({ contents, id }, { ...target, ifActive: { behavior: 'interrupt' } })
    case 'signal':
      return agent.sendSignal({ type: 'notification', contents, id }, target)
    case 'persist':
      return agent.sendMessage({ contents, id }, { ...target, ifActive: { behavior: 'persist' }, ifIdle: { behavior: 'persist' } })
    default:
      return agent.sendMessage({ contents, id }, target)
  }
}

/** What was sent and neither confirmed nor refused: its sender can't know, and sends it again. */
function unconfirmed(journals: readonly Journal[]): Array<{ thread: string; id: string; kind: SendKind }> {
  const open = new Map<string, { thread: string; id: string; kind: SendKind }>()
  for (const { notes } of journals) {
    for (const note of notes) {
      if (note.note === 'send') open.set(`${note.thread}|${note.id}`, note)
      if (note.note === 'stored' || note.note === 'refused') open.delete(`${note.thread}|${note.id}`)
    }
  }
  return [...open.values()]
}

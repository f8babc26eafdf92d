import type { Agent, SendReceipt } from '../../../src/index.ts'
import { isHeedError } from '../../../src/base/errors.ts'
import type { Chance } from '../../../src/store/conformance/fixture.ts'
import type { LibSQLStore } from '../../../src/store/sqlite/store.ts'
import { steadyNow, type JournalWriter, type SendKind } from '../journal.ts'
import { resourceId, sendAs } from '../load.ts'
import { mark, pause } from '../restless-model.ts'
import { seenOf } from '../watcher.ts'
import { copySeparator } from './lives.ts'

export type Op =
  | { do: 'send'; thread: string; kind?: SendKind; agent?: 'worker' | 'second' }
  | { do: 'generate'; thread: string }
  | { do: 'abort'; thread: string; clear: boolean; times?: number }
  /** `create`, `send`: with the same id, before anything else. */
  | { do: 'delete'; thread: string; next?: 'create' | 'send' }
  | { do: 'clone'; thread: string }
  | { do: 'backup' }
  | { do: 'restore' }
  /** A subscriber with a cursor that this process once had. */
  | { do: 'return'; thread: string }

interface ClientOptions {
  agents: { worker: Agent; second?: Agent }
  files: LibSQLStore
  chance: Chance
  journal: JournalWriter
  name: string
  threads: readonly string[]
  backups(): string[]
  newBackup(name: string): string
}

const kinds: readonly SendKind[] = ['message', 'message', 'message', 'queue', 'queue', 'interrupt', 'signal', 'persist']
/** What a refused decision or deletion may say: another process was faster, or this one closes. */
const lost: ReadonlySet<string> = new Set(['run_not_suspended', 'thread_not_found', 'closed'])

/** Does to threads what programs do, and notes what came of it. */
export class Client {
  readonly #options: ClientOptions
  readonly #open = new Set<string>()
  readonly #cursors = new Map<string, string[]>()
  readonly #leave = new Set<() => void>()
  #number = 0
  #stopped = false

  constructor(options: ClientOptions) {
    this.#options = options
  }

  /** So many things, drawn. In a `storm` most are not waited for. */
  async act(count: number, mood: 'storm' | 'calm'): Promise<void> {
    const { chance } = this.#options
    for (let left = count; left > 0 && !this.#stopped; left--) {
      const done = this.perform(this.#draw(mood))
      if (mood === 'calm' || chance.below(4) === 0) await done
      await pause(chance.below(mood === 'calm' ? 40 : 30))
    }
  }

  #draw(mood: 'storm' | 'calm'): Op {
    const { chance, threads } = this.#options
    const thread = chance.pick(threads)
    const at = chance.below(100)
    if (at < 46) return { do: 'send', thread, agent: chance.below(4) === 0 ? 'second' : 'worker' }
    if (at < 51) return { do: 'generate', thread }
    if (at < 66) return { do: 'abort', thread, clear: chance.below(2) === 0, times: 1 + chance.below(2) }
    if (at < 75) return { do: 'delete', thread, ...chance.pick<{ next?: 'create' | 'send' }>([{}, { next: 'create' }, { next: 'send' }, { next: 'send' }]) }
    if (at < 79) return { do: 'clone', thread }
    if (at < 87) return { do: 'return', thread }
    if (at < 94) return { do: 'backup' }
    return mood === 'calm' ? { do: 'send', thread } : { do: 'restore' }
  }

  /** Resolves when it is answered. What went wrong is noted. */
  async perform(op: Op): Promise<unknown> {
    try {
      return await this.#perform(op)
    } catch (error) {
      const code = isHeedError(error) ? error.code : 'unknown'
      if (!(this.#stopped && code === 'closed')) this.#options.journal.write({ note: 'trouble', what: `${JSON.stringify(op)}: ${code} ${String(error)}` })
      return code
    }
  }

  async #perform(op: Op): Promise<unknown> {
    const { chance } = this.#options
    switch (op.do) {
      case 'send':
        return this.#send(op.thread, op.kind ?? chance.pick(kinds), op.agent)
      case 'generate':
        return this.#generate(op.thread)
      case 'abort':
        return Promise.all(Array.from({ length: op.times ?? 1 }, (_, index) => this.#abort(op.thread, op.clear, index)))
      case 'delete':
        return this.#delete(op)
      case 'clone':
        return this.#clone(op.thread)
      case 'backup': {
        const { files, name, newBackup } = this.#options
        return files.backup(newBackup(`${name}.${this.#number++}`))
      }
      case 'restore':
        return this.#restore()
      case 'return':
        return this.#return(op.thread)
    }
  }

  /** Decides suspended calls, again and again. */
  async decide(patience: number): Promise<void> {
    const { agents, chance, journal } = this.#options
    while (!this.#stopped) {
      for (const agent of Object.values(agents) as Agent[]) {
        try {
          for (const { runId, threadId, toolCalls } of (await agent.listSuspendedRuns()).runs) {
            for (const { toolCallId, requiresApproval } of toolCalls) {
              if (chance.below(patience) > 0) continue
              const call = { resourceId, threadId, runId, toolCallId }
              if (!requiresApproval) await agent.sendStreamResume({ ...call, resumeData: { go: true } })
              else await agent.sendToolApproval({ ...call, approved: chance.below(4) > 0 })
            }
          }
        } catch (error) {
          if (!isHeedError(error)) throw error
          if (!lost.has(error.code)) journal.write({ note: 'trouble', what: `decide: ${error.code} ${error.message}` })
        }
      }
      await pause(10 + chance.below(30))
    }
  }

  /** Notes which sends and calls never got an outcome: everything is at rest, so that nothing is left to wait for. */
  async tellOpen(): Promise<void> {
    for (const until = performance.now() + 10_000; this.#open.size > 0 && performance.now() < until;) await pause(20)
    this.#options.journal.write({ note: 'open', ids: [...this.#open] })
  }

  stop(): void {
    this.#stopped = true
    for (const leave of this.#leave) leave()
  }

  async #send(thread: string, kind: SendKind, by: 'worker' | 'second' = 'worker'): Promise<void> {
    const { agents, journal, name } = this.#options
    const id = `${name}.${this.#number++}`
    journal.write({ note: 'send', thread, id, kind })
    this.#open.add(id)
    try {
      const receipt: SendReceipt = sendAs(agents[by] ?? agents.worker, kind, thread, id)
      const outcome = receipt.outcome.then(({ action, runId, step, reason }) => {
        this.#open.delete(id)
        journal.write({ note: 'outcome', thread, id, action, ...(runId === undefined ? {} : { runId }), ...(step === undefined ? {} : { step }), ...(reason === undefined ? {} : { reason }) })
      })
      await receipt.stored
      journal.write({ note: 'stored', thread, id })
      void outcome
    } catch (error) {
      journal.write({ note: 'refused', thread, id, why: isHeedError(error) ? error.code : String(error) })
    }
  }

  async #generate(thread: string): Promise<void> {
    const { agents, journal, name } = this.#options
    const id = `${name}.${this.#number++}`
    journal.write({ note: 'called', thread, id })
    this.#open.add(id)
    const answered = (how: string) => {
      this.#open.delete(id)
      journal.write({ note: 'answered', thread, id, how })
    }
    // Not waited for: its run may wait for a decision.
    void agents.worker.generate(`Do ${mark(thread, id)}.`, { memory: { thread, resource: resourceId } }).then(
      () => answered('ok'), (error: unknown) => answered(isHeedError(error) ? error.code : String(error)),
    )
  }

  async #abort(thread: string, clear: boolean, delay: number): Promise<unknown> {
    const { agents, journal, chance } = this.#options
    if (delay > 0) await pause(chance.below(15))
    const call = this.#number++
    journal.write({ note: 'abort', thread, call, clear })
    try {
      const { aborted, runId } = await agents.worker.abortRun({ threadId: thread, resourceId, clearPendingSignals: clear })
      journal.write({ note: 'abort-answered', thread, call, aborted, ...(runId === undefined ? {} : { runId }) })
      return aborted
    } catch (error) {
      const code = isHeedError(error) ? error.code : String(error)
      journal.write({ note: 'abort-failed', thread, call, code: code === 'closed' && !this.#stopped ? 'closed too early' : code })
      return code
    }
  }

  async #delete({ thread, next }: Extract<Op, { do: 'delete' }>): Promise<boolean> {
    const { agents, journal } = this.#options
    const memory = await agents.worker.getMemory()
    journal.write({ note: 'ending', thread })
    const done = await memory.deleteThread({ threadId: thread, resourceId })
    journal.write({ note: 'ended', thread, done })
    if (next === 'create') await memory.createThread({ threadId: thread, resourceId })
    if (next === 'send') await this.#send(thread, 'message')
    return done
  }

  async #clone(thread: string): Promise<void> {
    const { agents, journal, name } = this.#options
    const copy = `${thread}${copySeparator}${name}.${this.#number++}`
    try {
      await (await agents.worker.getMemory()).cloneThread({ sourceThreadId: thread, newThreadId: copy })
    } catch (error) {
      if (isHeedError(error) && error.code === 'thread_not_found') return
      throw error
    }
    journal.write({ note: 'cloned', thread, copy })
  }

  async #restore(): Promise<void> {
    const { files, journal, chance, backups } = this.#options
    const found = backups()
    if (found.length === 0) return
    journal.write({ note: 'ending' })
    try {
      await files.restore(chance.pick(found))
      journal.write({ note: 'ended', done: true })
    } catch (error) {
      // Another process restores the same backup.
      if (!isHeedError(error) || error.code !== 'store_failed' || !error.retryable) throw error
    }
  }

  /** Comes back to a thread with one of the cursors that this process had, reads a few chunks, and leaves. */
  async #return(thread: string): Promise<void> {
    const { agents, journal, chance, name } = this.#options
    const cursors = this.#cursors.get(thread) ?? []
    const after = cursors.length === 0 ? undefined : chance.pick(cursors)
    const watcher = `${name}/${thread}#${this.#number++}`
    const since = steadyNow()
    const subscription = await agents.worker.subscribeToThread({ threadId: thread, resourceId, ...(after === undefined ? {} : { after }) })
    journal.write({ note: 'watching', watcher, thread, since, ...(after === undefined ? {} : { after }) })
    const leave = () => subscription.unsubscribe()
    this.#leave.add(leave)
    // It stays until it has read so much: no code awaits it.
    void this.#read(subscription.stream, { watcher, thread, left: 5 + chance.below(40) }).finally(() => {
      leave()
      this.#leave.delete(leave)
    })
  }

  async #read(stream: AsyncIterable<Parameters<typeof seenOf>[0]>, { watcher, thread, left }: { watcher: string; thread: string; left: number }): Promise<void> {
    let more = left
    for await (const chunk of stream) {
      const seen = seenOf(chunk)
      const cursors = this.#cursors.get(thread) ?? []
      this.#cursors.set(thread, cursors)
      cursors.push(seen.cursor)
      this.#options.journal.write({ note: 'seen', watcher, thread, ...seen })
      if (--more === 0) return
    }
  }
}

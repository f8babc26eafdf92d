import { HeedError } from '../../../src/base/errors.ts'
import type { Fence, FormerLease, Send, StepCommit, ThreadStore } from '../../../src/store/contract/threads.ts'
import type { JournalWriter } from '../journal.ts'

/** Which calls of the store fail, and how. */
export interface StoreRule {
  methods: Array<'accept' | 'commitStep' | 'heartbeat' | 'claim'>
  /** How many calls of each method fail. Without a number, all until the rule is lifted. */
  times?: number
  /** The call is carried out, and its answer is lost. */
  lost: boolean
  /** Only calls for this thread. */
  thread?: string
}

type Method = StoreRule['methods'][number]

/** A store whose calls fail by rules, and which notes what a process believes when it calls them. */
export class BrokenStore {
  readonly #journal: JournalWriter
  #rules: Array<{ rule: StoreRule; left: Map<Method, number> }> = []
  /** Called when the end of a run is about to be stored. */
  onEnd: ((threadId: string, runId: string) => Promise<void>) | undefined

  constructor(journal: JournalWriter) {
    this.#journal = journal
  }

  add(rule: StoreRule): void {
    this.#rules.push({ rule, left: new Map(rule.methods.map((method) => [method, rule.times ?? Infinity])) })
  }

  mend(): void {
    this.#rules = []
  }

  wrap(store: ThreadStore): ThreadStore {
    const accept: ThreadStore['accept'] = (sends) => this.#call('accept', sends[0]?.threadId ?? '', sends.map(({ id }: Send) => id), () => store.accept(sends))
    const heartbeat: ThreadStore['heartbeat'] = (owner, until) => this.#call('heartbeat', '', [], () => store.heartbeat(owner, until))
    const claim: ThreadStore['claim'] = async (threadId, owner, agentIds, again?: FormerLease) => {
      const claimed = await this.#call('claim', threadId, [], () => store.claim(threadId, owner, agentIds, again))
      if (claimed) this.#journal.write({ note: 'leaseTaken', thread: threadId, epoch: claimed.fence.epoch, takenOver: claimed.takenOver, again: again !== undefined })
      return claimed
    }
    const commitStep: ThreadStore['commitStep'] = async (fence: Fence, commit: StepCommit) => {
      const { threadId } = fence
      if (commit.started && commit.started.length > 0) this.#journal.write({ note: 'callsStarting', thread: threadId, calls: commit.started })
      if (commit.end?.status === 'finished') await this.onEnd?.(threadId, commit.runId)
      return this.#call('commitStep', threadId, [], () => store.commitStep(fence, commit))
    }
    const own: Partial<ThreadStore> = { accept, heartbeat, claim, commitStep }
    return new Proxy(store, {
      get(target, key) {
        const instead: unknown = Reflect.get(own, key)
        if (instead) return instead
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
      },
    })
  }

  async #call<Answer>(method: Method, thread: string, ids: string[], act: () => Promise<Answer>): Promise<Answer> {
    const rule = this.#ruleFor(method, thread)
    if (!rule) return act()
    if (rule.lost) await act()
    this.#journal.write({ note: 'storeFailed', method, thread, lost: rule.lost, ids })
    throw new HeedError('store_failed', 'The connection to the store broke.', { retryable: true })
  }

  #ruleFor(method: Method, thread: string): StoreRule | undefined {
    for (const { rule, left } of this.#rules) {
      const times = left.get(method) ?? 0
      if (times === 0 || (rule.thread !== undefined && rule.thread !== thread)) continue
      left.set(method, times - 1)
      return rule
    }
    return undefined
  }
}

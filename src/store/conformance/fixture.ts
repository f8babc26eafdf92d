import assert from 'node:assert/strict'
import { isHeedError, type HeedErrorCode } from '../../base/errors.ts'
import type { MessageRow, RowRole } from '../../message/row.ts'
import type { Accepted, BegunRun, Fence, Send, StepCommit, StepCommitted, ThreadStore, Window, Windows } from '../contract/threads.ts'

/** Gives the suite the stores that it tests. */
export interface StoreHarness {
  /** A new store, empty and open. The harness closes it after the case. */
  store(): Promise<ThreadStore>
  /** Closes the store and opens its data again. Absent if its data does not outlive it. */
  reopen?(store: ThreadStore): Promise<ThreadStore>
  /**
   * Opens a second connection to the database of `store`, with its own transactions, locks and caches, as another process has them.
   * Absent if the database has one connection only, as in memory: the cases for two writers do not apply to it.
   */
  another?(store: ThreadStore): Promise<ThreadStore>
}

/** One guarantee as a test. The ids in brackets are those of PROTOCOL.md. */
export interface StoreCase {
  name: string
  run(harness: StoreHarness): Promise<void>
}

/** A harness whose database can be opened twice. */
export type TwoWriters<Harness extends { another?: unknown }> = Harness & { another: NonNullable<Harness['another']> }

/** One guarantee, tested by two connections that write at the same time. */
export interface StoreWriterCase {
  name: string
  run(harness: TwoWriters<StoreHarness>): Promise<void>
}

export const threadId = 'thread-1'
export const resourceId = 'resource-1'
export const scope = { threadId, resourceId }
export const wide = { low: 1000, high: 2000 }

let clock = 1_700_000_000_000
/** A later time at each call. */
export function tick(): number {
  clock += 1
  return clock
}

export function row(id: string, role: RowRole = 'user', text = id, more: Partial<MessageRow> = {}): MessageRow {
  return { id, messageId: id, role, createdAt: new Date(clock), content: { format: 2, parts: [{ type: 'text', text }] }, ...more }
}

export function signalRow(id: string, type: 'user' | 'reactive' | 'state' = 'user', attributes?: Record<string, string>): MessageRow {
  return row(id, 'signal', id, {
    type,
    content: {
      format: 2, parts: [{ type: 'text', text: id }], metadata: { signal: { id, type, tagName: type, ...(attributes && { attributes }) } },
    },
  })
}

/** A tool's result, as the row that follows its call. */
export function resultRow(id: string, toolCallId: string): MessageRow {
  return row(id, 'tool', id, {
    content: {
      format: 2,
      parts: [{ type: 'tool-invocation', toolInvocation: { toolCallId, toolName: 'look', args: {}, state: 'result', result: 1 } }],
    },
  })
}

/** A signal that wakes an idle thread for `p1` and enters an active run. */
export function send(id: string, more: Partial<Send> = {}): Send {
  return {
    threadId,
    resourceId,
    agentId: 'agent-1',
    id,
    mode: 'now',
    ifActive: { behavior: 'deliver' },
    ifIdle: { behavior: 'wake' },
    rows: [signalRow(id)],
    runId: `run-of-${id}`,
    claim: { owner: 'p1' },
    now: tick(),
    ...more,
  }
}

export const persisted: Partial<Send> = { ifActive: { behavior: 'persist' }, ifIdle: { behavior: 'persist' } }
export const queued: Partial<Send> = { mode: 'queue' }
/** A send of a process that doesn't run the agent. */
export const unclaimed: Partial<Send> = { claim: undefined }

export async function accept(store: ThreadStore, ...sends: Send[]): Promise<Accepted[]> {
  const answers = await store.accept(sends)
  return answers.map((answer) => {
    if ('error' in answer) throw answer.error
    return answer
  })
}

/** A store on a server repeats the work of a transaction as answers come: many small transactions take less time than a large one. */
export async function acceptInParts(store: ThreadStore, sends: readonly Send[]): Promise<void> {
  for (let from = 0; from < sends.length; from += 10) await accept(store, ...sends.slice(from, from + 10))
}

export async function acceptOne(store: ThreadStore, one: Send): Promise<Accepted> {
  const [answer] = await accept(store, one)
  assert.ok(answer)
  return answer
}

/** Marks a process as alive for the length of a test. */
export function alive(store: ThreadStore, ...owners: string[]): Promise<unknown> {
  return Promise.all(owners.map((owner) => store.heartbeat(owner, Date.now() + 3_600_000)))
}

export function gone(store: ThreadStore, owner: string): Promise<void> {
  return store.heartbeat(owner, 1)
}

/** The same window for each of these agents. */
export function windows(window: Window, ...agentIds: string[]): Windows {
  return new Map((agentIds.length > 0 ? agentIds : ['agent-1', 'agent-2', 'agent-3']).map((agentId) => [agentId, window]))
}

export interface Begun extends BegunRun {
  fence: Fence
}

/** Sends `id` to an idle thread and begins the run that it starts. */
export async function start(store: ThreadStore, id = 'a', more: Partial<Send> = {}): Promise<Begun> {
  await alive(store, more.claim?.owner ?? 'p1')
  const { fence } = await acceptOne(store, send(id, more))
  assert.ok(fence, 'a send to an idle thread takes the lease')
  return begin(store, fence)
}

export async function begin(store: ThreadStore, fence: Fence): Promise<Begun> {
  const begun = await store.beginRun(fence, windows(wide))
  assert.ok(begun, 'a signal is pending')
  return { ...begun, fence }
}

export function commit(store: ThreadStore, { fence, run }: Begun, more: Partial<StepCommit> = {}): Promise<StepCommitted> {
  return store.commitStep(fence, { runId: run.runId, step: 0, rows: [], ...more })
}

export const finish = { drain: true, end: { status: 'finished' } } as const satisfies Partial<StepCommit>

export async function rejectsWith(code: HeedErrorCode, act: Promise<unknown>): Promise<void> {
  await assert.rejects(act, (error) => {
    assert.ok(isHeedError(error), `expected a HeedError ${code}, got ${String(error)}`)
    assert.equal(error.code, code)
    return true
  })
}

/** Everything that can be read of a thread, to show that a rejected call changed none of it. */
export async function everything(store: ThreadStore, of = threadId): Promise<unknown> {
  const where = { threadId: of }
  if (!(await store.getThread(where))) return null
  return {
    thread: await store.getThread(where),
    rows: await store.listRows(where, { limit: 10_000, context: true }),
    signals: await store.listSignals(where),
    runs: await store.listRuns({ threadId: of }),
  }
}

export async function rowIds(store: ThreadStore, of = threadId): Promise<string[]> {
  const { rows } = await store.listRows({ threadId: of }, { limit: 10_000, context: true })
  return ids(rows)
}

export async function states(store: ThreadStore, of = threadId): Promise<Record<string, string>> {
  const signals = await store.listSignals({ threadId: of })
  return Object.fromEntries(signals.map((signal) => [signal.id, signal.state]))
}

export function ids(rows: ReadonlyArray<{ id: string }>): string[] {
  return rows.map(({ id }) => id)
}

export async function status(store: ThreadStore, of = threadId): Promise<string | undefined> {
  return (await store.getThread({ threadId: of }))?.status
}

/** Pseudo-random numbers, equal for equal seeds, so that a failure can be repeated. */
export class Chance {
  readonly seed: number
  #state: number

  constructor(seed = Math.floor(Math.random() * 2 ** 31)) {
    this.seed = seed
    this.#state = seed
  }

  /** An integer from 0, below `end`. */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % end
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new RangeError('pick() needs at least one item')
    return item
  }

  shuffle<Item>(items: readonly Item[]): Item[] {
    const rest = [...items]
    const shuffled: Item[] = []
    while (rest.length > 0) shuffled.push(...rest.splice(this.below(rest.length), 1))
    return shuffled
  }
}

/** Runs a case with random choices; a failure names the seed. */
export async function withChance(run: (chance: Chance) => Promise<void>): Promise<void> {
  const chance = new Chance()
  try {
    await run(chance)
  } catch (error) {
    throw new Error(`failed with seed ${chance.seed}`, { cause: error })
  }
}

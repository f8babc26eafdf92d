import { createHash } from 'node:crypto'
import { isName, orderedJSON } from '../base/json.ts'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import { claimMs, Dispatcher, type DispatchSettings } from './dispatcher.ts'
import { reservedIdPrefixes } from '../signals/normalise.ts'
import type { Signal } from '../signals/signal.ts'
import type { NewSchedule, ScheduleMissed, ScheduleOverlap, ScheduleQuery, ScheduleRecord, ScheduleScope, ScheduleStore } from '../store/contract/schedules.ts'
import type { Attendant, Runnable } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { SendOptions } from '../thread/send/send.ts'
import { checkTiming, nextAfter, occurrences, wrong } from './timing.ts'

/** When something is sent to a thread, and what is done when that is inconvenient. */
export interface ScheduleOptions {
  /** The same id again replaces the schedule. Made up unless given. */
  id?: string
  threadId: string
  resourceId: string
  /** One of these three: a cron expression, milliseconds, or one time. */
  cron?: string
  every?: number
  at?: Date
  /** Of the cron. The process's own unless told. */
  timeZone?: string
  /** Defaults to `allow`. */
  overlap?: ScheduleOverlap
  /** Defaults to `once`. */
  missed?: ScheduleMissed
}

/** A schedule of an id, whoever made it. */
export interface ScheduleOnce {
  schedule: ScheduleRecord
  /** False: one of this id was there. */
  created: boolean
  /** The one that was there sends something else, elsewhere or at other times. */
  differs: boolean
}

const firstRetryMs = 1_000
const longestRetryMs = 300_000
/** An occurrence that can't be sent for so long is given up. */
const giveUpMs = 3_600_000

const known = new Set(['id', 'threadId', 'resourceId', 'cron', 'every', 'at', 'timeZone', 'overlap', 'missed'])
const overlaps: readonly string[] = ['allow', 'skip', 'replace'] satisfies ScheduleOverlap[]
const misses: readonly string[] = ['once', 'skip', 'all'] satisfies ScheduleMissed[]

/** The schedules of one store in one process: kept in the store, sent by whichever process is there. */
export class Schedules implements Attendant {
  readonly #runtime: ThreadRuntime
  readonly #source: () => Promise<ScheduleStore | undefined>
  readonly #ephemeral: boolean
  readonly #dispatcher: Dispatcher
  #opening: Promise<ScheduleStore | undefined> | undefined

  constructor(runtime: ThreadRuntime, { store, settings, ephemeral }: { store(): Promise<ScheduleStore | undefined>; settings: DispatchSettings; ephemeral: boolean }) {
    this.#runtime = runtime
    this.#source = store
    this.#ephemeral = ephemeral
    this.#dispatcher = new Dispatcher(runtime, { ...settings, cron: undefined }, {
      dispatch: async (limit) => {
        const taken = await this.#dispatch(limit)
        return { taken, done: taken }
      },
      nextDue: async () => (await this.#store()).nextScheduleDue(runtime.agentIds()),
    })
  }

  async create(agent: Runnable, signal: Signal, options: ScheduleOptions): Promise<ScheduleRecord> {
    const { store, planned } = await this.#plan(agent, signal, options)
    const record = await store.putSchedule(planned)
    this.#dispatcher.expect(planned.nextAt)
    return record
  }

  /** Unless one of its id is there: that stays as it is. */
  async createOnce(agent: Runnable, signal: Signal, options: ScheduleOptions): Promise<ScheduleOnce> {
    const { store, planned } = await this.#plan(agent, signal, options)
    const { schedule, added } = await store.addSchedule(planned)
    if (added) this.#dispatcher.expect(planned.nextAt)
    return { schedule, created: added, differs: !added && essence(schedule) !== essence(planned) }
  }

  /** Everything that is wrong with it is refused here. */
  async #plan(agent: Runnable, signal: Signal, options: ScheduleOptions): Promise<{ store: ScheduleStore; planned: NewSchedule }> {
    const now = this.#runtime.clock.now()
    const { timing, first } = check(options, now)
    const { id = this.#runtime.newId(), threadId, resourceId, overlap = 'allow', missed = 'once' } = options
    this.#runtime.register(agent)
    await this.#runtime.open()
    const store = await this.#store()
    // A thread of another resource is refused here and not when the time has come.
    await this.#runtime.store.getThread({ threadId, resourceId })
    return { store, planned: { id, agentId: agent.id, threadId, resourceId, timing, overlap, missed, signal, nextAt: first, now } }
  }

  async get(scope: ScheduleScope): Promise<ScheduleRecord | null> {
    return (await this.#store()).getSchedule(scope)
  }

  async list(query: Partial<ScheduleQuery> = {}): Promise<{ schedules: ScheduleRecord[]; more: boolean }> {
    return (await this.#store()).listSchedules({ limit: 100, ...query })
  }

  async pause(scope: ScheduleScope): Promise<ScheduleRecord> {
    return found(scope, await (await this.#store()).setSchedule(scope, { status: 'paused', now: this.#runtime.clock.now() }))
  }

  /** Goes on with the next occurrence from now; those of the pause are not missed ones. */
  async resume(scope: ScheduleScope): Promise<ScheduleRecord> {
    const store = await this.#store()
    const record = found(scope, await store.getSchedule(scope))
    if (record.status === 'active') return record
    const now = this.#runtime.clock.now()
    const nextAt = nextAfter(record.timing, now, (record.lastAt ?? record.createdAt).getTime())
    const resumed = found(scope, await store.setSchedule(scope, { status: nextAt === undefined ? 'done' : 'active', now, ...(nextAt === undefined ? {} : { nextAt }) }))
    if (nextAt !== undefined) this.#dispatcher.expect(nextAt)
    return resumed
  }

  async remove(scope: ScheduleScope): Promise<boolean> {
    return (await this.#store()).deleteSchedule(scope)
  }

  // For the runtime

  idle(): void {}

  look(): void {
    if (!this.#quiet()) this.#dispatcher.track(this.#open().then((store) => store && this.#dispatcher.findNext()), 'looking for schedules that are due failed')
  }

  async sweep(limit?: number): Promise<number> {
    if (this.#quiet() || !(await this.#open())) return 0
    return limit === undefined ? this.#dispatcher.look() : this.#dispatcher.once(limit)
  }

  async close(): Promise<void> {
    await this.#dispatcher.close()
  }

  async #dispatch(limit: number): Promise<number> {
    const runtime = this.#runtime
    await runtime.open()
    const store = await this.#store()
    const now = runtime.clock.now()
    const due = await store.claimSchedules({ now, until: now + claimMs, limit, agentIds: runtime.agentIds() })
    await Promise.all(due.map((record) => this.#send(store, record, now)))
    return due.length
  }

  /** Each occurrence has one signal: one that was sent and not written down is sent again, and the thread takes it once. */
  async #send(store: ScheduleStore, record: ScheduleRecord, now: number): Promise<void> {
    const { id, timing, missed, agentId } = record
    const from = record.nextAt?.getTime()
    if (from === undefined) return
    const runtime = this.#runtime
    const { send, nextAt } = occurrences(timing, from, now, missed)
    const next = nextAt === undefined ? {} : { nextAt }
    try {
      let sent: { at: number; signalId: string } | undefined
      for (const at of send) {
        if (!(await isAsClaimed(store, record))) break
        const signal: Signal = { ...record.signal, id: occurrenceId(record, at), createdAt: new Date(now).toISOString() }
        const receipt = await runtime.sends.sendAccepted(runtime.agent(agentId), record.overlap === 'allow' ? 'queue' : 'now', signal, optionsOf(record))
        const isLeftOut = record.overlap === 'skip' && (await receipt.outcome).action === 'discarded'
        if (!isLeftOut) sent = { at, signalId: signal.id }
      }
      await runtime.store.flush()
      await store.advanceSchedule({ id, from, signalId: record.signal.id, ...next, ...(sent ? { sent } : {}), now })
    } catch (error) {
      if (runtime.closing) return
      runtime.logger.warn('a schedule could not be sent', { scheduleId: id, error: describe(error) })
      const failed = { id, from, signalId: record.signal.id, error: describe(error), now }
      // Each time it is waited for as long as it has failed already. What the thread refuses it refuses again: on to the next, and the record says why.
      const failing = record.lastError !== undefined && record.updatedAt.getTime() >= from ? now - record.updatedAt.getTime() : 0
      if (failing >= giveUpMs || (isHeedError(error) && (error.code === 'thread_forbidden' || error.code === 'id_taken'))) await store.advanceSchedule({ ...failed, ...next })
      else {
        const retryAt = now + Math.min(longestRetryMs, Math.max(firstRetryMs, failing))
        await store.failSchedule({ ...failed, retryAt })
        this.#dispatcher.expect(retryAt)
      }
    }
  }

  #quiet(): boolean {
    return this.#ephemeral && this.#opening === undefined
  }

  async #store(): Promise<ScheduleStore> {
    const store = await this.#open()
    if (store) return store
    throw new HeedError('unsupported_option', "The storage has no 'schedules' domain. Use one that has, such as LibSQLStore.", { details: { domain: 'schedules' } })
  }

  #open(): Promise<ScheduleStore | undefined> {
    if (this.#opening) return this.#opening
    this.#opening = this.#find().catch((error: unknown) => {
      this.#opening = undefined
      throw error
    })
    // Sweeps before the first use skip a database in memory; another Heed on the same store may have left something that is due.
    if (this.#ephemeral) this.#opening.then(() => this.look(), () => {})
    return this.#opening
  }

  async #find(): Promise<ScheduleStore | undefined> {
    await this.#runtime.open()
    const store = await this.#source()
    await store?.open()
    return store
  }
}

/** Whoever paused, replaced or removed it since it was taken wants nothing more of it. */
async function isAsClaimed(store: ScheduleStore, { id, nextAt, signal }: ScheduleRecord): Promise<boolean> {
  const found = await store.getSchedule({ id })
  return found?.status === 'active' && found.nextAt?.getTime() === nextAt?.getTime() && found.signal.id === signal.id
}

/** The same words at the same time are one signal, whoever sends them; other words are another. */
function occurrenceId({ id, signal: { id: _, createdAt: __, ...words } }: ScheduleRecord, at: number): string {
  return `${reservedIdPrefixes.occurrence}${id}:${at}:${createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 12)}`
}

function optionsOf({ threadId, resourceId, overlap }: ScheduleRecord): SendOptions {
  const target = { threadId, resourceId }
  if (overlap === 'allow') return target
  return { ...target, ifActive: { behavior: overlap === 'skip' ? 'discard' : 'interrupt' } }
}

function check(options: ScheduleOptions, now: number): ReturnType<typeof checkTiming> {
  if (typeof options !== 'object' || options === null) throw wrong('options', 'must have threadId, resourceId and a time')
  for (const key of Object.keys(options)) if (!known.has(key)) throw wrong(key, `is not known. Known: ${[...known].join(', ')}`)
  for (const field of ['threadId', 'resourceId'] as const) if (!isName(options[field])) throw wrong(field, 'is missing, or no text of whole characters without NUL')
  const { id, overlap = 'allow', missed = 'once' } = options
  if (id !== undefined && (!isName(id) || id.length > 200)) throw wrong('id', 'must be a text of 1 to 200 whole characters without NUL')
  if (!overlaps.includes(overlap)) throw wrong('overlap', `must be one of ${overlaps.join(', ')}`)
  if (!misses.includes(missed)) throw wrong('missed', `must be one of ${misses.join(', ')}`)
  return checkTiming(options, now)
}

function found(scope: ScheduleScope, record: ScheduleRecord | null): ScheduleRecord {
  if (record) return record
  throw new HeedError('invalid_argument', `There is no schedule '${scope.id}'.`, { details: { id: scope.id } })
}

/** What its maker wrote. */
function essence({ agentId, threadId, timing, overlap, missed, signal: { id: _, createdAt: _at, ...signal } }: NewSchedule | ScheduleRecord): string {
  return orderedJSON([agentId, threadId, timing, overlap, missed, signal])
}

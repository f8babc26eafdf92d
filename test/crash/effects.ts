import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { steadyNow } from './journal.ts'

/** One execution of a tool, as the tool itself wrote it down: when it began, when it suspended itself, and when it had done its work. */
export interface Effect {
  at: number
  phase: 'begun' | 'asked' | 'done'
  by: string
  thread: string
  run: string
  call: string
  tool: string
  idempotent: boolean
  /** The agent whose tool it is, with what arguments it was called, and with what data it was resumed. */
  agent?: string
  args?: unknown
  data?: unknown
  /** What the database held of the call as it began, read through a connection of its own. Absent when it was done. */
  record?: CallRecord
}

interface CallRecord {
  /** The step that asked for it is in history. */
  inHistory: boolean
  /** The run has it as started, or as decided: without one of them a takeover would run it again. */
  started: boolean
  decided: boolean
}

export type EffectCall = Omit<Effect, 'at' | 'phase' | 'by' | 'record'>

/** What the tools of one process do in the world: lines in a file, on the disk before the tool goes on. */
export class EffectFile {
  readonly #file: number
  readonly #by: string
  readonly #database: string
  #reading: { db: DatabaseSync; run: StatementSync; row: StatementSync } | undefined

  constructor(folder: string, slot: number, life: number, database: string) {
    this.#file = openSync(join(folder, `${slot}-${life}.effects`), 'a')
    this.#by = `${slot}.${life}`
    this.#database = database
  }

  /** Opens what is read from the database, which is opened with the first effect otherwise. */
  open(): void {
    this.#reading ??= this.#connect()
  }

  begun(call: EffectCall): void {
    this.#write({ at: steadyNow(), phase: 'begun', by: this.#by, ...call, record: this.#recordOf(call) })
  }

  /** It suspends itself. */
  asked(call: EffectCall): void {
    this.#write({ at: steadyNow(), phase: 'asked', by: this.#by, ...call, record: this.#recordOf(call) })
  }

  done(call: EffectCall): void {
    this.#write({ at: steadyNow(), phase: 'done', by: this.#by, ...call })
  }

  close(): void {
    closeSync(this.#file)
    this.#reading?.db.close()
  }

  #write(effect: Effect): void {
    writeSync(this.#file, `${JSON.stringify(effect)}\n`)
    fsyncSync(this.#file)
  }

  #recordOf({ thread, run, call }: EffectCall): CallRecord {
    this.#reading ??= this.#connect()
    const found = this.#reading.run.get(thread, run)
    const started = JSON.parse(String(found?.started ?? '[]')) as string[]
    const waiting = JSON.parse(String(found?.suspended ?? '[]')) as Array<{ toolCallId: string; decision?: { approved?: boolean } }>
    return {
      inHistory: Number(this.#reading.row.get(thread, run, `%"${call}"%`)?.rows) > 0,
      started: started.includes(call),
      decided: waiting.some(({ toolCallId, decision }) => toolCallId === call && decision !== undefined && decision.approved !== false),
    }
  }

  #connect(): { db: DatabaseSync; run: StatementSync; row: StatementSync } {
    const db = new DatabaseSync(this.#database, { readOnly: true, timeout: 5_000 })
    return {
      db,
      run: db.prepare('SELECT started, suspended FROM heed_runs WHERE thread = (SELECT key FROM heed_threads WHERE id = ?) AND run_id = ?'),
      row: db.prepare(`SELECT count(*) AS rows FROM heed_messages WHERE thread = (SELECT key FROM heed_threads WHERE id = ?) AND run_id = ? AND role = 'assistant' AND content LIKE ?`),
    }
  }
}

export function readEffects(folder: string): Effect[] {
  const lines = readdirSync(folder).filter((name) => name.endsWith('.effects')).flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n').slice(0, -1))
  return lines.map((line) => JSON.parse(line) as Effect).toSorted((a, b) => a.at - b.at)
}

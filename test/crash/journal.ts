import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { DecisionNote } from './decisions/notes.ts'
import type { FaultNote } from './faults/notes.ts'

/** How a signal was sent. */
export type SendKind = 'message' | 'queue' | 'interrupt' | 'signal' | 'persist'

/** What a process of the harness notes about itself. What it noted is true even if it is killed in the next instant. */
export type Note =
  | { note: 'up'; pid: number }
  /** A send is about to be made. */
  | { note: 'send'; thread: string; id: string; kind: SendKind }
  /** The store has it; whether it would survive a power cut is the question of `stored`. */
  | { note: 'accepted'; thread: string; id: string }
  /** Its `stored` resolved: from here on nothing may lose it. */
  | { note: 'stored'; thread: string; id: string }
  | { note: 'refused'; thread: string; id: string; why: string }
  | { note: 'outcome'; thread: string; id: string; action: string; runId?: string; step?: number; reason?: string }
  /** The model was called: its prompt message by message, each as a digest, and the marks of the signals in it. */
  | { note: 'asked'; thread: string; prompt: string[]; marks: string[]; call?: number }
  /** A call of the model is over, or was cut. */
  | { note: 'over'; thread: string; call: number }
  /** A write of a lease holder was answered; it was asked for at `began`. */
  | { note: 'written'; thread: string; epoch: number; what: string; began: number; rows: string[] }
  /** The process that runs the thread gave a chunk its place, before any watcher had it. */
  | ({ note: 'said'; thread: string } & SeenChunk)
  /** A watcher got a chunk. */
  | ({ note: 'seen'; watcher: string; thread: string } & SeenChunk)
  /** A watcher is attached; it asked for that at `since`. */
  | { note: 'watching'; watcher: string; thread: string; after?: string; since?: number }
  /** A thread is about to be deleted, or all of them to be replaced by those of a backup; `ended`: it was answered. */
  | { note: 'ending'; thread?: string }
  | { note: 'ended'; thread?: string; done: boolean }
  | { note: 'cloned'; thread: string; copy: string }
  /** An abort is about to be called, by the how manieth call of this process; its answer, or the code of its error. */
  | { note: 'abort'; thread: string; call: number; clear: boolean }
  | { note: 'abort-answered'; thread: string; call: number; aborted: boolean; runId?: string }
  | { note: 'abort-failed'; thread: string; call: number; code: string }
  /** A caller waits for an answer; what it got: `ok`, or the code of its error. */
  | { note: 'called'; thread: string; id: string }
  | { note: 'answered'; thread: string; id: string; how: string }
  /** A tool that runs until it is aborted was aborted. */
  | { note: 'let-go'; thread: string }
  /** The sends and calls without an outcome, when everything was at rest. */
  | { note: 'open'; ids: string[] }
  | { note: 'trouble'; what: string }
  /** The machine had no moment for this process, for so many milliseconds. */
  | { note: 'stalled'; ms: number }
  /** From here on no process dies or sleeps: every chunk is to arrive as it is published. */
  | { note: 'calm' }
  /** It was asked to end: sends may be refused from here on, and watchers leave. */
  | { note: 'stopping' }
  | { note: 'closed' }
  | DecisionNote
  | FaultNote

export interface SeenChunk {
  cursor: string
  type: string
  /** The words of a delta; each is the time at which the model made it. */
  words?: number[]
  /** Of an echo: the signal. */
  id?: string
  /** Of a snapshot: why, and the messages in it. */
  reason?: string
  messages?: SeenMessage[]
}

export interface SeenMessage {
  id: string
  role: string
  text: string
}

/** `at` is in microseconds of the machine's steady clock, which all processes share. */
export type Noted = Note & { at: number }

export interface Journal {
  /** Which of the places for a process it ran in, and the how manieth there. */
  slot: number
  life: number
  notes: Noted[]
}

/** Microseconds of a clock that all processes of this machine share and that never goes back. */
export function steadyNow(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

export class JournalWriter {
  readonly #file: number

  constructor(folder: string, slot: number, life: number) {
    this.#file = openSync(join(folder, fileName(slot, life)), 'a')
  }

  /** In the hands of the system when it returns: a kill can't take it back. */
  write(note: Note): void {
    writeSync(this.#file, `${JSON.stringify({ at: steadyNow(), ...note })}\n`)
  }

  close(): void {
    closeSync(this.#file)
  }
}

export function readJournals(folder: string): Journal[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder).flatMap((name) => {
    const match = /^(\d+)-(\d+)\.journal$/.exec(name)
    return match ? [{ slot: Number(match[1]), life: Number(match[2]), notes: notesIn(readFileSync(join(folder, name), 'utf8')) }] : []
  }).toSorted((a, b) => a.slot - b.slot || a.life - b.life)
}

function fileName(slot: number, life: number): string {
  return `${slot}-${life}.journal`
}

function notesIn(text: string): Noted[] {
  // A kill can cut the last line.
  return text.split('\n').slice(0, -1).map((line) => JSON.parse(line) as Noted)
}

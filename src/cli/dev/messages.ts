import type { FailureOptions } from '../shell/failure.ts'

/** What the process of the user's code is to do. */
export interface WorkerTask {
  /** The path of the user's module. */
  file: string
  envFile?: string
  /** The address at which people reach it: any but this machine needs auth. */
  host: string
}

/** From the process of the user's code to its supervisor. */
export type WorkerReport =
  /** A file is about to be read; `stamp` is that of `stampOf`. */
  | { type: 'reads'; path: string; stamp: string }
  /** The module was evaluated, and its Heed starts. */
  | { type: 'loaded' }
  | { type: 'ready'; port: number; agents: string[]; prefix: string; studioPath?: string; forgets: boolean }
  | { type: 'failed'; message: string; options: Omit<FailureOptions, 'cause'>; stack?: string }

/** From the supervisor to the process of the user's code: end at the next boundary of its runs, or at once. */
export interface CloseOrder {
  type: 'close'
  at: 'boundary' | 'now'
}

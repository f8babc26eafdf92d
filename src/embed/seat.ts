import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { HeedError } from '../base/errors.ts'
import { inheritedFlags, openWorker, siblingOf } from '../base/worker.ts'
import { fastPackage, isInstalled } from './package-of.ts'
import type { EmbedAnswer, EmbedRequest } from './embed-worker.ts'

/** Where vectors are made, apart from the event loop. */
export interface Seat {
  ask(request: EmbedRequest): void
  /** Whether the process stays alive for it. */
  ref(): void
  unref(): void
  end(): Promise<void>
}

export interface SeatEvents {
  answered(answer: EmbedAnswer): void
  /** It is gone. */
  failed(error: unknown): void
}

/** A thread; for ONNX Runtime a process, since a thread that ends while that works takes everything along. */
export function openSeat(events: SeatEvents): Seat {
  return isInstalled(fastPackage) ? inProcess(events) : inThread(events)
}

function inThread({ answered, failed }: SeatEvents): Seat {
  const worker = openWorker(import.meta.url, 'embed-worker')
  worker.on('message', answered)
  worker.once('error', failed)
  worker.once('exit', (code) => failed(gone(`thread ended with ${code}`)))
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    ask: (request) => worker.postMessage(request),
    ref: () => worker.ref(),
    unref: () => worker.unref(),
    async end() {
      await worker.terminate()
    },
  }
}

function inProcess({ answered, failed }: SeatEvents): Seat {
  const child = fork(fileURLToPath(siblingOf(import.meta.url, 'embed-worker')), {
    execArgv: inheritedFlags(), serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      failed(gone(`process ended with ${signal ?? code}`))
      resolve()
    })
    child.once('error', (error) => {
      failed(error)
      resolve()
    })
  })
  child.on('message', (answer: EmbedAnswer) => answered(answer))
  return {
    ask(request) {
      child.send(request, (error) => error && failed(error))
    },
    ref() {
      child.ref()
      child.channel?.ref()
    },
    unref() {
      child.unref()
      child.channel?.unref()
    },
    async end() {
      child.kill('SIGKILL')
      child.ref()
      await ended
    },
  }
}

function gone(why: string): HeedError {
  return new HeedError('provider_error', `The local embedder is gone: its ${why}.`, { retryable: true })
}

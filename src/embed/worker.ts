import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { HeedError } from '../base/errors.ts'
import { inheritedFlags, openWorker, siblingOf } from '../base/worker.ts'
import type { EmbedResponse, EmbedRequest } from './embed-worker.ts'

/** The worker thread or process that makes vectors, beside the event loop. */
export interface EmbedWorker {
  send(request: EmbedRequest): void
  /** Keeps the process alive, until `unref`. */
  ref(): void
  unref(): void
  terminate(): Promise<void>
}

interface EmbedWorkerEvents {
  onResponse(response: EmbedResponse): void
  /** The worker ended; it sends no more responses. */
  onFailure(error: unknown): void
}

/** Starts a worker thread, or a process for ONNX Runtime: a worker thread that ends while ONNX Runtime works would crash the process. */
export function startEmbedWorker(hasOnnxRuntime: boolean, events: EmbedWorkerEvents): EmbedWorker {
  return hasOnnxRuntime ? startProcess(events) : startThread(events)
}

function startThread({ onResponse, onFailure }: EmbedWorkerEvents): EmbedWorker {
  const worker = openWorker(import.meta.url, 'embed-worker')
  worker.on('message', onResponse)
  worker.once('error', onFailure)
  worker.once('exit', (code) => onFailure(workerEnded(`thread ended with code ${code}`)))
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread has no origin
    send: (request) => worker.postMessage(request),
    ref: () => worker.ref(),
    unref: () => worker.unref(),
    async terminate() {
      await worker.terminate()
    },
  }
}

function startProcess({ onResponse, onFailure }: EmbedWorkerEvents): EmbedWorker {
  const child = fork(fileURLToPath(siblingOf(import.meta.url, 'embed-worker')), {
    execArgv: inheritedFlags(), serialization: 'advanced', stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      onFailure(workerEnded(`process ended with ${signal ?? `code ${code}`}`))
      resolve()
    })
    child.once('error', (error) => {
      onFailure(error)
      resolve()
    })
  })
  child.on('message', (response: EmbedResponse) => onResponse(response))
  return {
    send(request) {
      child.send(request, (error) => error && onFailure(error))
    },
    ref() {
      child.ref()
      child.channel?.ref()
    },
    unref() {
      child.unref()
      child.channel?.unref()
    },
    async terminate() {
      child.kill('SIGKILL')
      child.ref()
      await ended
    },
  }
}

function workerEnded(why: string): HeedError {
  return new HeedError('provider_error', `The local embedder failed: its ${why}.`, { retryable: true })
}

import { Worker, type WorkerOptions } from 'node:worker_threads'

/** Flags that say how the text of `node --eval` is read. A thread would inherit them, and refuse its file for them. */
const ofText = /^--(?:input-type|eval|print)(?:=|$)|^-(?:e|p|pe)$/

/** A thread that runs the file of this name beside the one that asks, which says where it is itself: `import.meta.url`. */
export function openWorker(beside: string, name: string, options: WorkerOptions = {}): Worker {
  const extension = beside.endsWith('.ts') ? 'ts' : 'js'
  return new Worker(new URL(`./${name}.${extension}`, beside), { ...options, execArgv: process.execArgv.filter((flag) => !ofText.test(flag)) })
}

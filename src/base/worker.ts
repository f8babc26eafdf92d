import { Worker, type WorkerOptions } from 'node:worker_threads'

/** Flags that say what the text of a program is, and how it is read: those with the text behind them, and the others. */
const withText = /^(?:--eval|--print|-e|-p|-pe)$/
const ofText = /^--(?:input-type|eval|print)(?:=|$)/

/** The flags of this process for threads and processes that run a file: they would refuse it for the others. */
export function inheritedFlags(flags: readonly string[] = process.execArgv): string[] {
  return flags.filter((flag, at) => !ofText.test(flag) && !withText.test(flag) && !withText.test(flags[at - 1] ?? ''))
}

/** The file of this name beside the one that asks, which says where it is itself: `import.meta.url`. */
export function siblingOf(beside: string, name: string): URL {
  return new URL(`./${name}.${beside.endsWith('.ts') ? 'ts' : 'js'}`, beside)
}

/**
 * A thread that runs such a file. Threads take the flags of their process by themselves; named to them, some are refused that are meant for a whole
 * process, such as the size of its heap. So they are named only where one must not be taken, and then without those.
 */
export function openWorker(beside: string, name: string, options: WorkerOptions = {}): Worker {
  const file = siblingOf(beside, name)
  const execArgv = inheritedFlags()
  if (execArgv.length === process.execArgv.length) return new Worker(file, options)
  try {
    return new Worker(file, { ...options, execArgv })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_INVALID_EXEC_ARGV')) throw error
    return new Worker(file, { ...options, execArgv: [] })
  }
}

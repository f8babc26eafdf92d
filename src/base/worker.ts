import { Worker, type WorkerOptions } from 'node:worker_threads'

/** Flags that pass a program as text, and flags about such a text. The former have the text as their next argument. */
const withText = /^(?:--eval|--print|-e|-p|-pe)$/
const ofText = /^--(?:input-type|eval|print)(?:=|$)/

/** The flags of this process for threads and processes that run a file: with flags about a text, Node rejects the file. */
export function inheritedFlags(flags: readonly string[] = process.execArgv): string[] {
  return flags.filter((flag, at) => !ofText.test(flag) && !withText.test(flag) && !withText.test(flags[at - 1] ?? ''))
}

/** The file of this name beside the caller's, whose URL is `beside`: `import.meta.url`. */
export function siblingOf(beside: string, name: string): URL {
  return new URL(`./${name}.${beside.endsWith('.ts') ? 'ts' : 'js'}`, beside)
}

/**
 * A thread that runs such a file. Threads inherit the flags of their process. Where flags are passed, Node rejects those of a whole
 * process, such as the size of its heap; so flags are passed only where one must be left out, and without them if Node rejects them.
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

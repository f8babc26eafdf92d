import { AsyncLocalStorage } from 'node:async_hooks'
import type { RunHost } from '../loop/run-contract.ts'

/** The tool call in whose execution code runs. */
export interface ActiveCall {
  host: RunHost
  threadId: string
  /** The tool has returned: what it started may still run. */
  hasEnded: boolean
}

const activeCalls = new AsyncLocalStorage<ActiveCall | undefined>()

export function runInCall<T>(call: ActiveCall, work: () => T): T {
  return activeCalls.run(call, work)
}

/** The run of a thread is no part of the tool call that woke it. */
export function runOutsideCalls<T>(work: () => T): T {
  return activeCalls.getStore() ? activeCalls.run(undefined, work) : work()
}

/** The call in whose execution this is called, until the tool returns. */
export function activeCall(): ActiveCall | undefined {
  const call = activeCalls.getStore()
  return call?.hasEnded ? undefined : call
}

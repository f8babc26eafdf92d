import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { newFile } from '../new-file.ts'
import type { Commands } from './process.ts'

type Result<Name extends keyof Commands> = Awaited<ReturnType<Commands[Name]>>

/** A process on the file, as its parent sees it. */
export class Member {
  readonly child: ChildProcess
  readonly #open = new Map<number, PromiseWithResolvers<unknown>>()
  #ids = 0

  constructor(child: ChildProcess) {
    this.child = child
    child.on('message', ({ id, result, error }: { id?: number; result?: unknown; error?: { message: string; code?: string } }) => {
      if (id === undefined) return
      const waiting = this.#open.get(id)
      this.#open.delete(id)
      if (error) waiting?.reject(Object.assign(new Error(error.message), { code: error.code }))
      else waiting?.resolve(result)
    })
    child.on('exit', () => {
      for (const waiting of this.#open.values()) waiting.reject(new Error('the process is gone'))
    })
  }

  ask<Name extends keyof Commands>(name: Name, ...given: Parameters<Commands[Name]>): Promise<Result<Name>> {
    const waiting = Promise.withResolvers<unknown>()
    this.#open.set(++this.#ids, waiting)
    this.child.send({ id: this.#ids, name, given })
    return waiting.promise as Promise<Result<Name>>
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.kill(signal)
    await once(this.child, 'exit')
  }
}

/** One that is ended after the test. */
export async function member(file: string, ...agentIds: string[]): Promise<Member> {
  const made = await started(file, ...agentIds)
  onTestFinished(() => made.end())
  return made
}

/** One that waits for the answers of the others when it connects, however long they take on a busy machine. It is ended after the test. */
export async function patientMember(file: string): Promise<Member> {
  const made = await forked([file], { ...process.env, HEED_PATIENT: 'true' })
  onTestFinished(() => made.end())
  return made
}

/** When the clocks of `sweepingMember` showed the time of the system. */
const clockStart = Date.now()

/** One with these variables in its environment. It is ended after the test. */
export async function memberWith(file: string, variables: Record<string, string>, ...agentIds: string[]): Promise<Member> {
  const made = await forked([file, ...agentIds], { ...process.env, ...variables })
  onTestFinished(() => made.end())
  return made
}

/** One whose clock is four times as fast as the system's, for tests that wait for sweeps. All members of its file have that clock. It is ended after the test. */
export function sweepingMember(file: string, variables: Record<string, string> = {}): Promise<Member> {
  return memberWith(file, { ...variables, HEED_CLOCK_START: String(clockStart) })
}

/** One that its caller ends. */
export function started(file: string, ...agentIds: string[]): Promise<Member> {
  return forked([file, ...agentIds])
}

async function forked(given: string[], env = process.env): Promise<Member> {
  const child = fork(join(import.meta.dirname, 'process.ts'), given, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], execArgv: [], env })
  await once(child, 'message')
  const made = new Member(child)
  await made.ask('start')
  return made
}

/** So many processes on one new file. */
export function cluster(count: number): Promise<Member[]> {
  const file = newFile()
  return Promise.all(Array.from({ length: count }, () => member(file)))
}

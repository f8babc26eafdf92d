import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach } from 'vitest'
import {
  notificationWriterConformance, scheduleWriterConformance, storeWriterConformance, subscriptionWriterConformance,
  watchWriterConformance,
} from '../../src/testing/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/store.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import type { Meeting } from './no-locks.ts'
import { copyEmptyFile, copyEmptyOfClient } from './empty-database.ts'
import { fileClient } from './file-client.ts'
import { SecondConnection } from './second-connection.ts'

export type Tried = 'memory' | 'notifications' | 'schedules' | 'subscriptions' | 'watches'

/** How a database file is opened the first and the second time. */
export interface Engine {
  first(path: string): (domain: Tried) => Promise<StoreDomains[Tried]>
  second(path: string): (domain: Tried) => Promise<StoreDomains[Tried]>
}

const folder = mkdtempSync(join(tmpdir(), 'heed-writers-'))
let files = 0
const threads: SecondConnection[] = []
const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()))
})
afterAll(async () => {
  await Promise.all(threads.map((thread) => thread.end()))
  rmSync(folder, { recursive: true })
})

export function opened(store: LibSQLStore): (domain: Tried) => Promise<StoreDomains[Tried]> {
  closing.push(() => store.close())
  return async (domain) => (await store.getStore(domain)) as StoreDomains[Tried]
}

/** Stores of one more thread, which is started when it is first needed and ends with the tests. */
export function inThread(meeting?: Meeting): (path: string) => (domain: Tried) => Promise<StoreDomains[Tried]> {
  let thread: SecondConnection | undefined
  return (path) => {
    if (!thread) threads.push(thread = new SecondConnection({ ...(meeting && { meeting }) }))
    const { store } = thread
    const url = `file:${path}`
    closing.push(() => store(url, 'memory').close())
    return async (domain) => store(url, domain)
  }
}

export const file: Engine = { first: (path) => opened(new LibSQLStore({ url: `file:${copyEmptyFile(path)}` })), second: inThread() }

/** What a server would be asked is asked of a file here. */
function through(path: string): (domain: Tried) => Promise<StoreDomains[Tried]> {
  const url = `file:${path}`
  return opened(new LibSQLStore({ url, client: fileClient(url) }))
}
export const client: Engine = { first: (path) => through(copyEmptyOfClient(path)), second: through }

interface Harness<Store> {
  store(): Promise<Store>
  another(store: Store): Promise<Store>
}

export function harness<Domain extends Tried>({ first, second }: Engine, domain: Domain): Harness<StoreDomains[Domain]> {
  const paths = new Map<unknown, string>()
  return {
    async store() {
      const path = join(folder, `${files++}.db`)
      const store = await first(path)(domain)
      paths.set(store, path)
      await store.open()
      return store as StoreDomains[Domain]
    },
    async another(store) {
      const other = await second(paths.get(store) ?? '')(domain)
      await other.open()
      return other as StoreDomains[Domain]
    },
  }
}

interface Case {
  name: string
  run(engine: Engine): Promise<void>
}

interface CaseOf<Domain extends Tried> {
  name: string
  run(harness: Harness<StoreDomains[Domain]>): Promise<void>
}

function casesOf<Domain extends Tried>(domain: Domain, cases: ReadonlyArray<CaseOf<Domain>>): Case[] {
  return cases.map(({ name, run }) => ({ name, run: (engine) => run(harness(engine, domain)) }))
}

export const twoWriters = [
  ...casesOf('memory', storeWriterConformance),
  ...casesOf('notifications', notificationWriterConformance),
  ...casesOf('schedules', scheduleWriterConformance),
  ...casesOf('subscriptions', subscriptionWriterConformance),
  ...casesOf('watches', watchWriterConformance),
]

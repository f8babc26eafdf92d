import { registerHooks } from 'node:module'
import { resolve as resolvePath } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Agent } from '../../agent/agent.ts'
import type { Heed } from '../../heed/heed.ts'
import { isLoopback } from '../../http/request/exchange.ts'
import { devStudioOf } from '../serve/studio.ts'
import { loadUserModule, loadEnvironment } from '../serve/user-module.ts'
import { exitCodes, Failure, toFailure } from '../shell/failure.ts'
import { stampOf } from './file-stamps.ts'
import type { CloseOrder, WorkerReport, WorkerTask } from './messages.ts'

/** The process of `heed dev` that has the user's code. Its supervisor starts another one for each change, and then closes it. */

/** How long a close waits for the boundary of a run. */
const boundaryMs = 5_000

const task = JSON.parse(process.argv[2] ?? '{}') as WorkerTask

function report(message: WorkerReport): void {
  if (process.connected) process.send?.(message)
}

/** The files of the user, linked packages included: files below node_modules change by an install only. */
function reportReads(): void {
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:') && !url.includes('/node_modules/') && !isOwn(url)) reportRead(fileURLToPath(url))
      return next(url, context)
    },
  })
}

const ownFolder = new URL(import.meta.url.endsWith('.ts') ? '../../' : './', import.meta.url).href

/** Of this package, where it is linked and not installed. */
function isOwn(url: string): boolean {
  return url.startsWith(ownFolder)
}

function reportRead(path: string): void {
  report({ type: 'reads', path, stamp: stampOf(path) })
}

async function main(): Promise<void> {
  const environment = resolvePath(task.envFile ?? '.env')
  reportRead(environment)
  loadEnvironment(task.envFile)
  reportReads()
  // The hook names the file too; without it, a file that Node refuses by its name would not be watched.
  reportRead(task.file)
  const { heed, options, serve } = await loadUserModule(task.file)
  report({ type: 'loaded' })
  if ((options.auth === undefined || options.auth === 'local') && !isLoopback(task.host)) {
    throw new Failure(exitCodes.failed, `Serving on ${task.host} needs auth.`, {
      code: 'invalid_argument', remedy: 'Export it: export const server = { auth: apiKeys({ … }) }. Without it, serve on localhost.',
    })
  }
  const studio = devStudioOf(options)
  const server = await serve(heed, {
    ...options, port: 0, hostname: '127.0.0.1', handleSignals: false, ...(studio === undefined ? {} : { studio }),
  })
  let isClosing = false
  const close = async (at: CloseOrder['at']) => {
    if (isClosing) return
    isClosing = true
    if (at === 'boundary') await nextBoundary(heed).catch(() => {})
    await server.close()
    process.exit(0)
  }
  process.on('message', (order: CloseOrder) => void close(order.at))
  process.once('disconnect', () => void close('now'))
  const agents = Object.values(heed.listAgents()).map(({ id }) => id)
  const port = Number(new URL(server.url).port)
  const pages = studio === undefined ? {} : { studioPath: studio.path }
  report({ type: 'ready', port, agents, prefix: options.prefix ?? '/api', ...pages, forgets: await forgets(heed) })
}

/** Whether a storage is in memory, so that the next process starts without its threads. */
async function forgets(heed: Heed): Promise<boolean> {
  const storages = await Promise.all(heed.sites.all().map((site) => site.storage()))
  return storages.some((storage) => 'url' in storage && (storage.url === ':memory:' || storage.url === 'file::memory:'))
}

/** Resolves when each run of this process has reached a boundary or has ended, and after some seconds at the latest. */
async function nextBoundary(heed: Heed): Promise<void> {
  const late = new Promise<void>((resolve) => setTimeout(resolve, boundaryMs).unref())
  const agents: Agent[] = Object.values(heed.listAgents())
  const threads = new Map<string, Agent>()
  for (const agent of agents) for (const { id } of await agent.listActiveThreads()) threads.set(id, agent)
  const boundaries = [...threads].map(async ([threadId, agent]) => {
    const subscription = await agent.subscribeToThread({ threadId })
    if (subscription.activeRunId() === null) return subscription.unsubscribe()
    for await (const { type } of subscription.stream) if (ending.has(type)) break
    subscription.unsubscribe()
  })
  await Promise.race([late, Promise.allSettled(boundaries)])
}

/** Chunks after which a run is stored. */
const ending: ReadonlySet<string> = new Set(['step-finish', 'finish', 'error', 'abort', 'tool-call-approval', 'tool-call-suspended'])

// The terminal sends Ctrl-C to all processes: the supervisor decides.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})

try {
  await main()
} catch (error) {
  const { message, options: { cause, ...options }, stack } = toFailure(error)
  const { url } = Object(cause) as { url?: unknown }
  // A module that was not found may be created.
  if (typeof url === 'string' && url.startsWith('file:')) reportRead(fileURLToPath(url))
  const trace = (cause instanceof Error && cause.stack) || stack
  report({ type: 'failed', message, options, ...(trace === undefined ? {} : { stack: trace }) })
  process.disconnect?.()
  process.exit(1)
}

import { Channel, directChannel } from '../../src/channel/index.ts'
import { apiKeys, principalScopes, serve } from '../../src/http/server.ts'
import { Agent, createTool, Heed, Memory, silentLogger } from '../../src/index.ts'
import { WebhookSignals } from '../../src/sources/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { fuzzKeys, type Health } from './fuzzed.ts'

/** A server that measures itself, as a process of its own: `node --expose-gc fuzzed-process.ts <file>`. It tells its health when it is asked. */
const [file = ''] = process.argv.slice(2)

const tickMs = 10
let longest = 0
let last = { at: performance.now(), cpu: cpuMs() }

/** The processor time of this thread: what other processes and threads of the machine do is no stop of ours. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

setInterval(() => {
  const now = { at: performance.now(), cpu: cpuMs() }
  const delay = now.at - last.at - tickMs
  longest = Math.max(longest, Math.min(delay, now.cpu - last.cpu))
  last = now
}, tickMs).unref()

process.on('message', () => {
  globalThis.gc?.()
  const { heapUsed } = process.memoryUsage()
  const health: Health = { longestStopMs: longest, heapUsed }
  // A collection that was asked for is no stop.
  last = { at: performance.now(), cpu: cpuMs() }
  process.send?.(health)
})

const pay = createTool({ id: 'pay', inputSchema: { type: 'object', properties: {} } as const, requireApproval: true, execute: () => 'paid' })
const agent = new Agent({
  id: 'guide', model: scriptedModel(['Hello.', '{}', { toolCalls: [{ toolName: 'pay', input: {} }] }], { loop: true }), tools: { pay },
  memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }),
})
const phone = new Channel({ id: 'phone', adapter: directChannel({ kind: 'sms' }), resourceId: 'user-1' })
const shop = new WebhookSignals({ id: 'shop', secret: 'whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=' })
const heed = new Heed({ agents: { guide: agent }, storage: new LibSQLStore({ url: `file:${file}` }), logger: silentLogger, sources: [shop], channels: [phone] })
const auth = apiKeys({
  [fuzzKeys.user]: { id: 'user', resources: ['user-1'], scopes: principalScopes.endUser },
  [fuzzKeys.tenant]: { id: 'tenant', resources: ['user-1', 'user-2'] },
  [fuzzKeys.operator]: { id: 'operator', resources: '*' },
})
const server = await serve(heed, { port: 0, auth, limits: { failedLogins: false } })
process.stdout.write(`${server.url}\n`)

import { Channel, directChannel } from '../../src/channel/index.ts'
import { Agent, Heed, silentLogger } from '../../src/index.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import type { WatchStore } from '../../src/store/contract/watches.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { shiftedClock } from './shifted-clock.ts'

/**
 * A process that kills itself at a point of the way from a message to its thread: `node watch-process.ts <file> <point> <nth> <shift> <first>`.
 * The first one registers two watches and receives three messages; each of them works until nothing is due.
 */
const [file = '', point = '', nth = '1', shift = '0', first] = process.argv.slice(2)
let left = Number(nth)

function reached(name: string): void {
  if (name === point && --left === 0) process.kill(process.pid, 'SIGKILL')
}

/** The methods between which a process may end. */
function fragile(store: WatchStore): WatchStore {
  const hooked: Partial<WatchStore> = {
    async addInbounds(inbounds) {
      const added = await store.addInbounds(inbounds)
      reached('stored')
      return added
    },
    async claimCandidates(claim) {
      const claimed = await store.claimCandidates(claim)
      if (claimed.length > 0) reached('claimed')
      return claimed
    },
    async settleCandidate(settlement) {
      reached('judged')
      const settled = await store.settleCandidate(settlement)
      reached('settled')
      return settled
    },
    async confirmDelivery(delivery) {
      reached('sent')
      await store.confirmDelivery(delivery)
      reached('confirmed')
    },
  }
  return new Proxy(store, {
    get(target, key) {
      const own: unknown = Reflect.get(hooked, key)
      if (own) return own
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
    },
  })
}

class FragileStore extends LibSQLStore {
  override async getStore<Domain extends keyof StoreDomains>(domain: Domain): Promise<StoreDomains[Domain] | undefined> {
    const store = await super.getStore(domain)
    return domain === 'watches' && store ? (fragile(store as WatchStore) as StoreDomains[Domain]) : store
  }
}

const clock = shiftedClock(Number(shift))
const judge = scriptedModel(({ tools }) => ({
  toolCalls: [{ toolName: tools?.some(({ name }) => name === 'report_signal') ? 'report_signal' : 'complete_task', input: { result: { matched: true } } }],
}))
const agent = new Agent({ id: 'assistant', model: scriptedModel(() => 'Noted.'), watches: { model: judge } })
const adapter = directChannel({ kind: 'sms' })
const channel = new Channel({ id: 'phone', adapter, resourceId: 'ada' })
const heed = new Heed({ agents: { assistant: agent }, storage: new FragileStore({ url: `file:${file}`, clock }), channels: [channel], clock, logger: silentLogger })
if (first) {
  const input = { description: 'any message', expected_channels: ['sms'], expires_in_minutes: 600 }
  await agent.awaitSignal(input, { id: 'one', threadId: 'one', resourceId: 'ada' })
  await agent.awaitSignal({ ...input, mode: 'continuous' }, { id: 'each', threadId: 'each', resourceId: 'ada' })
  await adapter.deliver(...['1', '2', '3'].map((providerId) => ({ providerId, text: 'Hello.', sender: { address: '+15550100', verified: true } })))
}
await heed.start()
while ((await heed.tick()).watches > 0);
await heed.close()

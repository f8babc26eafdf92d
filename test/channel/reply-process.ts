import { appendFileSync } from 'node:fs'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { Agent, Heed, silentLogger } from '../../src/index.ts'
import type { StoreDomains } from '../../src/store/contract/storage.ts'
import type { WatchStore } from '../../src/store/contract/watches.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { shiftedClock } from '../watch/shifted-clock.ts'

/**
 * A process that kills itself at a point of the way from a message to its reply: `node reply-process.ts <file> <point> <nth> <shift> <first>`.
 * The first one receives three messages; each of them works until nothing is due. What the provider is asked to send is appended to a file.
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
    async annotateInbound(annotation) {
      const annotated = await store.annotateInbound(annotation)
      reached('annotated')
      return annotated
    },
    async claimReplies(claim) {
      const claimed = await store.claimReplies(claim)
      if (claimed.length > 0) reached('claimed')
      return claimed
    },
    async settleReply(settlement) {
      const { type } = settlement.step
      reached(`before ${type}`)
      const settled = await store.settleReply(settlement)
      reached(`after ${type}`)
      return settled
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
const model = scriptedModel(({ prompt }) => {
  reached('run')
  // Other words in each life: a reply that was made twice would differ.
  return `Answer to ${/text \d/.exec(JSON.stringify(prompt.at(-1)))?.[0]} at ${shift}.`
})
const agent = new Agent({ id: 'assistant', model })
const adapter = directChannel({
  kind: 'sms',
  async send({ text, idempotencyKey }) {
    reached('send')
    appendFileSync(`${file}.sent`, `${JSON.stringify([idempotencyKey, text])}\n`)
    reached('provider')
    return { providerId: `at ${idempotencyKey}` }
  },
})
const channel = new Channel({ id: 'phone', adapter, resourceId: 'ada', mode: 'message', agent })
const heed = new Heed({ agents: { assistant: agent }, storage: new FragileStore({ url: `file:${file}`, clock }), channels: [channel], clock, logger: silentLogger })
if (first) await adapter.deliver(...['1', '2', '3'].map((id) => ({ providerId: id, text: `This is text ${id}.`, sender: { address: '+15550100', verified: true } })))
await heed.start()
while ((await heed.tick()).watches > 0);
await heed.close()

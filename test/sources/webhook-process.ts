import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { serve } from '../../src/http/server.ts'
import { WebhookSignals, type SourceEvent } from '../../src/sources/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { secret } from './signing.ts'

/** A server that kills itself when a webhook was received, or when it was stored and not answered: `node webhook-process.ts <file> <point>`. */
const [file = '', point] = process.argv.slice(2)

class Fragile extends WebhookSignals {
  override async deliver(event: SourceEvent): Promise<number> {
    if (point === 'received') process.kill(process.pid, 'SIGKILL')
    const told = await super.deliver(event)
    if (point === 'stored') process.kill(process.pid, 'SIGKILL')
    return told
  }
}

const shop = new Fragile({ id: 'shop', secret })
const agent = new Agent({ id: 'guide', model: scriptedModel(['Noted.'], { loop: true }), notifications: { deliveryPolicy: { default: 'persist', priorities: { medium: 'persist' } } } })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), sources: [shop], logger: silentLogger })
const server = await serve(heed, { port: 0 })
await shop.subscribe({ threadId: 't1', resourceId: 'user-1', agentId: 'guide', externalId: 'order-7' })
process.stdout.write(`${server.url}\n`)

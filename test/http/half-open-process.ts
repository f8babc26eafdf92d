import { execFileSync } from 'node:child_process'
import { connect } from 'node:net'
import { Agent, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { serve } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'

/** In a network of its own: a server, a client that watches, and then no way between them. Says `watched`, and `gone` when the server has noticed. */
const say = (words: string) => process.stdout.write(`${words}\n`)
execFileSync('ip', ['link', 'set', 'lo', 'up'])
const agent = new Agent({ id: 'guide', model: scriptedModel([]) })
const subscribe = agent.subscribeToThread.bind(agent)
agent.subscribeToThread = async (options) => {
  const subscription = await subscribe(options)
  return {
    ...subscription,
    unsubscribe() {
      subscription.unsubscribe()
      say('gone')
      process.exit(0)
    },
  }
}
const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
const server = await serve(heed, { port: 0, heartbeatMs: 16_000, lingerMs: 0 })
const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
socket.on('error', () => {})
socket.once('data', () => {
  say('watched')
  // Nothing that is sent arrives from here on, in either direction; neither side receives an error.
  execFileSync('ip', ['link', 'set', 'lo', 'down'])
})
socket.write('GET /api/agents/guide/threads/thread-1/subscribe?resourceId=user-1 HTTP/1.1\r\nHost: localhost\r\n\r\n')

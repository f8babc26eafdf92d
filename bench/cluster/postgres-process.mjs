import { Agent, createTool, Heed, Memory, silentLogger } from '../../src/index.ts'
import { PostgresStore } from '../../src/store/postgres/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { LiveThread } from '../../src/thread/stream/live.ts'

// One process on the database. Times are microseconds on a clock that all processes of a machine share.
const [connectionString, schemaName] = process.argv.slice(2)
const now = () => Number(process.hrtime.bigint() / 1000n)

/** When the model was first called with each signal, when each chunk was published here, and when it was seen here. */
const called = {}
const said = {}
const seen = {}
let working = false
/** By how much timers of a millisecond were late: what the machine adds to each of the times. */
const late = []
let timer

const work = createTool({ id: 'work', idempotent: true, execute: () => new Promise((resolve) => setTimeout(() => resolve('done'), 1)) })
const model = scriptedModel((call) => {
  for (const [, id] of JSON.stringify(call.prompt.slice(-20)).matchAll(/signal (s\d+)/g)) called[id] ??= now()
  return working ? { text: ['Still ', 'at ', 'work.'], toolCalls: [{ toolName: 'work' }] } : 'Done.'
}, { record: false })
const agent = new Agent({ id: 'guide', model, tools: { work }, memory: new Memory({ lastMessages: 20, semanticRecall: false }) })
const heed = new Heed({ agents: { agent }, storage: new PostgresStore({ connectionString, schemaName, max: 8 }), logger: silentLogger })
const { publish } = LiveThread.prototype
LiveThread.prototype.publish = function (chunk) {
  publish.call(this, chunk)
  if (chunk.type === 'text-delta') said[chunk.cursor] = now()
}

const commands = {
  async watch(thread) {
    const { stream } = await agent.subscribeToThread(thread)
    void (async () => {
      for await (const chunk of stream) if (chunk.type === 'text-delta') seen[chunk.cursor] = now()
    })()
  },
  begin(thread) {
    working = true
    let before = now()
    timer = setInterval(() => late.push(now() - before - 1_000) && (before = now()), 1)
    return agent.sendMessage('Begin.', { ...thread, ifIdle: { streamOptions: { maxSteps: 100_000 } } }).outcome
  },
  end() {
    working = false
    clearInterval(timer)
  },
  async send(thread, id) {
    await agent.sendMessage({ contents: `signal ${id}`, id }, thread).stored
    return { id, stored: now() }
  },
  times: () => ({ called, said, seen, late }),
  turns: (name, count) => Promise.all(Array.from({ length: count }, (_, nth) => (
    agent.generate('Hello', { memory: { thread: `${name}-${nth}`, resource: name } })
  ))).then(() => true),
  close: () => heed.close(),
}

process.on('message', async ({ id, name, given }) => process.send({ id, result: await commands[name](...given) }))
await heed.start()
process.send({ ready: true })

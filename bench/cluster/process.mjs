import { Agent, createTool, Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

// One process on the file. Times are microseconds on a clock that all processes of a machine share.
const [file, stepMs] = process.argv.slice(2)
const now = () => Number(process.hrtime.bigint() / 1000n)

const work = createTool({ id: 'work', idempotent: true, execute: () => new Promise((resolve) => setTimeout(() => resolve('done'), Number(stepMs))) })
let working = true
const model = scriptedModel(() => (working ? { text: ['Still ', 'at ', 'work.'], toolCalls: [{ toolName: 'work' }] } : 'Done.'), { record: false })
const agent = new Agent({ id: 'guide', model, tools: { work } })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), logger: silentLogger })

/** When each signal was seen to enter, and when each cursor was seen. */
const entered = {}
const seen = {}
/** When the first chunk of each epoch was seen. */
const epochs = {}

const commands = {
  start: () => heed.start(),
  close: () => heed.close(),
  stop: () => void (working = false),
  async watch(thread) {
    const { stream } = await agent.subscribeToThread(thread)
    void (async () => {
      for await (const chunk of stream) {
        const at = now()
        if (chunk.type !== 'data-thread-snapshot') epochs[chunk.cursor.split('.')[0]] ??= at
        if (chunk.type === 'data-user-message') entered[chunk.data.id] = at
        if (chunk.type === 'text-delta') seen[chunk.cursor] = at
      }
    })()
  },
  begin: (thread) => agent.sendMessage('Begin.', { ...thread, ifIdle: { streamOptions: { maxSteps: 100_000 } } }).outcome,
  async send(thread, id) {
    const receipt = agent.sendMessage({ contents: 'And this.', id }, thread)
    await receipt.stored
    const stored = now()
    const outcome = await receipt.outcome
    return { stored, told: now(), outcome }
  },
  times: () => ({ entered, seen, epochs }),
  now,
}

process.on('message', async ({ id, name, given }) => process.send({ id, result: await commands[name](...given) }))
process.send({ ready: true })

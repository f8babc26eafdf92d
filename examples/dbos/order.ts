// An agent of Heed that buys by a workflow on DBOS: one PostgreSQL has the thread of the agent and the run of the workflow.
// DATABASE_URL=postgresql://… node order.ts            asks, and ends while the question is open
// DATABASE_URL=postgresql://… node order.ts approve    answers it, in another process
import { DBOS } from '@dbos-inc/dbos-sdk'
import { Agent, Heed } from 'heed'
import { PostgresStore } from 'heed/pg'
import { scriptedModel } from 'heed/testing'
import { dbosWorkflow } from './dbos-workflow.ts'

const url = process.env.DATABASE_URL ?? ''

const buy = dbosWorkflow({
  id: 'buy',
  description: 'Buys an item once a person has agreed.',
  inputSchema: { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] },
  async run({ item }: { item: string }, { step, ask }) {
    const price = await step('price', async () => item.length * 100)
    const { ok } = (await ask({ question: `Buy ${item} for ${price}?` })) as { ok: boolean }
    return ok ? { receipt: await step('pay', async () => `paid ${price} for ${item}`) } : { receipt: 'nothing bought' }
  },
})

// A model of your own in its place: 'openai/gpt-5.5'.
const call = { toolCalls: [{ toolName: 'workflow-buy', toolCallId: 'buy-1', input: { inputData: { item: 'a bell' } } }] }
const model = scriptedModel(({ prompt }) => {
  const result = /"receipt":"([^"]*)"/.exec(JSON.stringify(prompt.at(-1)))?.[1]
  return result === undefined ? call : `Done: ${result}.`
})

const clerk = new Agent({ id: 'clerk', instructions: 'You buy what is asked for.', model, workflows: { buy } })
const heed = new Heed({ agents: { clerk }, storage: new PostgresStore({ connectionString: url }) })

DBOS.setConfig({ name: 'heed-example', systemDatabaseUrl: url, logLevel: 'error' })
await DBOS.launch()
if (process.argv[2] === 'approve') {
  const { runs: [waiting] } = await clerk.listSuspendedRuns({ threadId: 'order-7' })
  const stream = await clerk.resumeStream({ ok: true }, { runId: waiting?.runId ?? '' })
  console.log(await stream.text)
} else {
  const { suspended } = await clerk.generate('A bell, please.', { memory: { thread: 'order-7', resource: 'user-7' } })
  console.log(JSON.stringify(suspended[0]?.payload))
  // As a power cut would.
  if (process.argv[2] === 'die') process.kill(process.pid, 'SIGKILL')
}
await heed.close()
await DBOS.shutdown()

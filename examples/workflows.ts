// Workflows: steps in a fixed order that sleep, wait for an event, ask a person, and go on in the next process.
import { Heed, InMemoryStore } from 'heed'
import { createStep, createWorkflow } from 'heed/workflows'
import { z } from 'zod'

const order = z.object({ item: z.string(), price: z.number() })

const stock = createStep({ id: 'stock', inputSchema: order, outputSchema: z.boolean(), execute: async () => true })
const credit = createStep({ id: 'credit', inputSchema: order, outputSchema: z.number(), execute: async () => 500 })
const approve = createStep({
  id: 'approve',
  inputSchema: order,
  outputSchema: order,
  resumeSchema: z.object({ ok: z.boolean() }),
  execute: async ({ inputData, resumeData, suspend, bail }) => {
    if (!resumeData) return suspend({ question: `${inputData.item} for ${inputData.price}?` })
    return resumeData.ok ? inputData : bail('declined')
  },
})
const ship = createStep({
  id: 'ship',
  inputSchema: z.object({ tracking: z.string() }),
  outputSchema: z.string(),
  // It may run again after a crash: the carrier knows the key.
  idempotent: true,
  execute: async ({ inputData, stepKey }) => `${inputData.tracking} (${stepKey})`,
})

export async function main(_model: undefined, print: (text: string) => void = console.log) {
  const buy = createWorkflow({ id: 'buy', inputSchema: order, outputSchema: z.string() })
    .parallel([stock, credit])
    .map(({ getInitData }) => getInitData<z.infer<typeof order>>())
    .then(approve)
    // A day, in a shop: a sleep is a time in the store, and no process has to wait for it.
    .sleep(20)
    .waitForEvent('handed-over', { schema: z.object({ tracking: z.string() }) })
    .then(ship)
    .commit()
  const heed = new Heed({ workflows: { buy }, storage: new InMemoryStore() })
  const run = heed.getWorkflow('buy').createRun({ runId: 'order-7', resourceId: 'user-7' })

  const asked = await run.start({ inputData: { item: 'A bicycle', price: 400 } })
  if (asked.status === 'suspended') print(`asked: ${JSON.stringify(Object.values(asked.suspendPayload)[0])}`)
  // The event comes before the run waits for it.
  await run.sendEvent('handed-over', { tracking: 'CH-1' }, { id: 'handover-1' })
  const done = await run.resume({ resumeData: { ok: true } })
  print(`${done.status}: ${done.status === 'success' ? done.result : ''}`)
  await heed.close()
  return done.status
}

if (import.meta.main) await main(undefined)

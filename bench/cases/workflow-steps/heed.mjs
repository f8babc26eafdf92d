import { z } from 'zod'
import { importHeed } from '../../harness/side.mjs'
import { newDatabase } from '../../threads/database.mjs'
import { addOne, count, reportSteps } from './steps.mjs'

const { Heed } = await importHeed()
const { LibSQLStore } = await importHeed('libsql')
const { createStep, createWorkflow } = await importHeed('workflows')

const schema = z.object({ value: z.number() })
function made(id) {
  let workflow = createWorkflow({ id, inputSchema: schema, outputSchema: schema })
  for (let step = 0; step < count; step++) workflow = workflow.then(createStep({ id: `step-${step}`, inputSchema: schema, outputSchema: schema, execute: addOne }))
  // A workflow has a then(): in a promise it would be taken for one.
  return { workflow: workflow.commit() }
}

const { workflow: inMemory } = made('in-memory')
const { workflow: stored } = made('stored')
const heed = new Heed({ workflows: { stored }, storage: new LibSQLStore({ url: newDatabase() }) })
await heed.start()
await reportSteps({ inMemory: (start) => inMemory.createRun().start(start), stored: (start) => stored.createRun({ resourceId: 'user' }).start(start) })

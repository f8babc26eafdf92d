import { Mastra } from '@mastra/core/mastra'
import { createStep, createWorkflow } from '@mastra/core/workflows'
import { LibSQLStore } from '@mastra/libsql'
import { z } from 'zod'
import { newDatabase } from '../../threads/database.mjs'
import { addOne, count, reportSteps } from './steps.mjs'

const schema = z.object({ value: z.number() })
function made(id) {
  let workflow = createWorkflow({ id, inputSchema: schema, outputSchema: schema })
  for (let step = 0; step < count; step++) workflow = workflow.then(createStep({ id: `step-${step}`, inputSchema: schema, outputSchema: schema, execute: addOne }))
  workflow.commit()
  return workflow
}

const workflow = made('in-memory')
const inMemory = new Mastra({ workflows: { workflow }, logger: false })
const storedWorkflow = made('stored')
const storage = new LibSQLStore({ id: 'workflows', url: newDatabase() })
const onFile = new Mastra({ workflows: { workflow: storedWorkflow }, storage, logger: false })
const starting = (mastra) => async (start) => (await mastra.getWorkflow('workflow').createRun({ resourceId: 'user' })).start(start)
await reportSteps({ inMemory: starting(inMemory), stored: starting(onFile) })

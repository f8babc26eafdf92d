import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Heed, isHeedError } from 'heed'
import { LibSQLStore } from 'heed/libsql'
import { createStep, createWorkflow } from 'heed/workflows'
import { z } from 'zod'
import { newFolder } from './parts/folder.ts'

const number = z.object({ n: z.number() })
const add = createStep({ id: 'add', inputSchema: number, outputSchema: number, execute: async ({ inputData }) => ({ n: inputData.n + 1 }) })
const ask = createStep({
  id: 'ask', inputSchema: number, outputSchema: number, resumeSchema: number,
  execute: ({ inputData, resumeData, suspend }) => (resumeData ? { n: inputData.n + resumeData.n } : suspend('How much?')),
})
const sums = () => createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(add).then(ask).commit()

test('a run is suspended in one process and resumed in another', async () => {
  const url = `file:${newFolder()}/heed.db`
  const first = new Heed({ workflows: { sums: sums() }, storage: new LibSQLStore({ url }) })
  const asked = await first.getWorkflow('sums').createRun({ runId: 'r1' }).start({ inputData: { n: 1 } })
  assert.equal(asked.status, 'suspended')
  await first.close()
  const second = new Heed({ workflows: { sums: sums() }, storage: new LibSQLStore({ url }) })
  const done = await second.getWorkflow('sums').createRun({ runId: 'r1' }).resume({ resumeData: { n: 10 } })
  assert.deepEqual(done.status === 'success' && done.result, { n: 12 })
  assert.equal((await second.getWorkflow('sums').listWorkflowRuns()).total, 1)
  await second.close()
})

test('a mistake is thrown at commit()', () => {
  assert.throws(() => createWorkflow({ id: 'twice', inputSchema: number }).then(add).then(add).commit(), (error) => isHeedError(error) && error.code === 'invalid_workflow')
})

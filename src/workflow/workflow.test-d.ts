import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import { createTool } from '../run/tools/tool.ts'
import { Agent } from '../agent/agent.ts'
import { createStep, createWorkflow } from './index.ts'

const length = createStep({ id: 'length', inputSchema: z.object({ text: z.string() }), outputSchema: z.object({ n: z.number() }), execute: ({ inputData }) => ({ n: inputData.text.length }) })
const half = createStep({ id: 'half', inputSchema: z.object({ n: z.number() }), outputSchema: z.number(), execute: ({ inputData }) => inputData.n / 2 })
const start = () => createWorkflow({ id: 'typed', inputSchema: z.object({ text: z.string() }), outputSchema: z.number() })

// What one step gives is what the next one gets, and the result is that of the schema.
const workflow = start().then(length).then(half).commit()
const result = await workflow.createRun().start({ inputData: { text: 'x' } })
if (result.status === 'success') expectTypeOf(result.result).toEqualTypeOf<number>()
if (result.status === 'failed') expectTypeOf(result.error).toEqualTypeOf<Error>()

// @ts-expect-error the input of the workflow has a text
void workflow.createRun().start({ inputData: { txt: 'x' } })
// @ts-expect-error half needs a number, and the workflow begins with a text
void start().then(half)
// @ts-expect-error the last step gives { n }, and the workflow a number
void start().then(length).commit()

// The outputs of steps beside each other have their ids.
const both = createWorkflow({ id: 'both', inputSchema: z.object({ text: z.string(), n: z.number() }) }).parallel([length, half])
void both.map(({ inputData }) => {
  expectTypeOf(inputData).toEqualTypeOf<{ length: { n: number }; half: number }>()
  return inputData.half
})
void createWorkflow({ id: 'one', inputSchema: z.object({ text: z.string() }) }).branch([[({ inputData }) => inputData.text === '', length]]).map(({ inputData }) => {
  expectTypeOf(inputData).toEqualTypeOf<{ length?: { n: number } }>()
})

// foreach() takes the elements apart.
void createWorkflow({ id: 'each', inputSchema: z.array(z.object({ text: z.string() })), outputSchema: z.array(z.object({ n: z.number() })) }).foreach(length).commit()
// @ts-expect-error the elements are texts, and length needs an object
void createWorkflow({ id: 'each', inputSchema: z.array(z.string()) }).foreach(length)

// A mapping has the types of its fields.
void start().then(length).map({ n: { step: length, path: 'n' }, who: { value: 'x' as const } }).map(({ inputData }) => {
  expectTypeOf(inputData.n).toEqualTypeOf<number>()
  expectTypeOf(inputData.who).toEqualTypeOf<'x'>()
})

// Steps of tools and agents have their types.
const tool = createTool({ id: 'lookup', inputSchema: z.object({ city: z.string() }), outputSchema: z.object({ sky: z.string() }), execute: async () => ({ sky: 'rain' }) })
const agent = new Agent({ id: 'poet', model: 'openai/gpt-5.5' })
const composed = createWorkflow({ id: 'composed', inputSchema: z.object({ city: z.string() }), outputSchema: z.object({ text: z.string() }) })
  .then(createStep(tool))
  .map(({ inputData }) => {
    expectTypeOf(inputData).toEqualTypeOf<{ sky: string }>()
    return { prompt: inputData.sky }
  })
  .then(createStep(agent))
  .commit()
// A workflow is a step of another.
void createWorkflow({ id: 'outer', inputSchema: z.object({ city: z.string() }) }).then(composed).map(({ inputData }) => {
  expectTypeOf(inputData).toEqualTypeOf<{ text: string }>()
})

// The last step gives what the schema of the workflow takes, and the result is what the schema makes of it.
const made = createWorkflow({ id: 'made', inputSchema: z.object({ text: z.string() }), outputSchema: z.string().transform(Number) }).map(({ inputData }) => inputData.text).commit()
void made.createRun().start({ inputData: { text: '7' } }).then((result) => {
  if (result.status === 'success') expectTypeOf(result.result).toEqualTypeOf<number>()
})
// @ts-expect-error the schema takes a text
void createWorkflow({ id: 'made', outputSchema: z.string().transform(Number) }).map(() => 7).commit()

// The suspension and the answer have their types.
void createStep({
  id: 'ask', suspendSchema: z.object({ question: z.string() }), resumeSchema: z.object({ ok: z.boolean() }), outputSchema: z.boolean(),
  execute({ resumeData, suspend }) {
    expectTypeOf(resumeData).toEqualTypeOf<{ ok: boolean } | undefined>()
    // @ts-expect-error a question is a text
    if (!resumeData) return suspend({ question: 1 })
    return resumeData.ok
  },
})

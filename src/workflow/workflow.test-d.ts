import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import { createTool } from '../run/tools/tool.ts'
import { Agent } from '../agent/agent.ts'
import { createStep, createWorkflow, mapVariable, type WorkflowRunStatus } from './index.ts'

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

// Agents and tools in the builder have the types of their steps.
const built = createWorkflow({ id: 'built', inputSchema: z.object({ city: z.string() }), outputSchema: z.object({ lines: z.number() }) })
  .tool(tool, { id: 'sky', description: 'Looks up.' })
  .map(({ inputData, getStepResult }) => {
    expectTypeOf(inputData).toEqualTypeOf<{ sky: string }>()
    expectTypeOf(getStepResult('sky')).toEqualTypeOf<unknown>()
    return { prompt: inputData.sky }
  }, { id: 'prompt' })
  .agent(agent, { structuredOutput: { schema: z.object({ lines: z.number() }) } })
void built.commit()
// @ts-expect-error the tool needs a city, and the workflow begins with a number
void createWorkflow({ id: 'x', inputSchema: z.number() }).tool(tool)
// @ts-expect-error an agent needs a prompt
void createWorkflow({ id: 'x', inputSchema: z.object({ city: z.string() }) }).agent(agent)

// A schema gives a field its type, a path also below another, and a variable keeps it.
const tier = mapVariable({ requestContextPath: 'tier', schema: z.enum(['gold', 'tin']) })
const deep = createStep({ id: 'deep', inputSchema: z.any(), outputSchema: z.object({ a: z.object({ b: z.number() }) }), execute: () => ({ a: { b: 1 } }) })
void start().then(deep).map({ tier, made: { fn: () => '7', schema: z.string().transform(Number) }, b: { step: deep, path: 'a.b' }, whole: { step: deep } }).map(({ inputData }) => {
  expectTypeOf(inputData).toEqualTypeOf<{ tier: 'gold' | 'tin'; made: number; b: number; whole: { a: { b: number } } }>()
})
// @ts-expect-error the input of the workflow that the map is in
void start().map({ a: { initData: built } })

// The number of elements at a time is computed of the list.
void createWorkflow({ id: 'each', inputSchema: z.array(z.object({ text: z.string() })) }).foreach(length, {
  concurrency: ({ inputData }) => {
    expectTypeOf(inputData).toEqualTypeOf<Array<{ text: string }>>()
    return inputData.length
  },
})

// Hooks and schedules have the types of the workflow.
void createWorkflow({
  id: 'hooked', inputSchema: z.object({ text: z.string() }), outputSchema: z.number(), stateSchema: z.object({ seen: z.number() }),
  schedule: [{ id: 'a', cron: '@daily', inputData: { text: 'x' }, initialState: { seen: 0 } }],
  options: {
    onStart({ inputData, state }) {
      expectTypeOf(inputData).toEqualTypeOf<{ text: string }>()
      expectTypeOf(state).toEqualTypeOf<{ seen: number }>()
    },
    onFinish(ended) {
      expectTypeOf(ended.status).toEqualTypeOf<'success' | 'failed' | 'tripwire' | 'canceled'>()
      if (ended.status === 'success') expectTypeOf(ended.result).toEqualTypeOf<number>()
    },
    onError: ({ error, status }) => {
      expectTypeOf(error).toEqualTypeOf<Error>()
      expectTypeOf(status).toEqualTypeOf<'failed' | 'tripwire'>()
    },
  },
})
// @ts-expect-error the input has a text
void createWorkflow({ id: 'hooked', inputSchema: z.object({ text: z.string() }), schedule: { cron: '@daily', inputData: { txt: 'x' } } })

// What is read of a run, and what its stream tells.
const read = await workflow.getWorkflowRunById('r1', { fields: ['status', 'result'] })
if (read) expectTypeOf(read.result).toEqualTypeOf<number | undefined>()
// @ts-expect-error it was not read
void read?.steps
// @ts-expect-error no field of a run
void workflow.getWorkflowRunById('r1', { fields: ['outcome'] })
expectTypeOf(workflow.createRun().stream({ inputData: { text: 'x' }, closeOnSuspend: false, perStep: true }).status).resolves.toEqualTypeOf<WorkflowRunStatus>()
// @ts-expect-error no option of a start that is waited for
void workflow.createRun().start({ inputData: { text: 'x' }, closeOnSuspend: false })
void workflow.createRun().timeTravel({ step: ['inner', 'half'], context: { length: { output: { n: 1 } } }, perStep: true, resumeData: 1 })

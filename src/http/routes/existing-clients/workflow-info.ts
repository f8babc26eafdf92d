import { compileSchema } from '../../../schema/compile.ts'
import type { Schema } from '../../../schema/schema.ts'
import { childrenOf, type Child, type WorkflowGraph } from '../../../workflow/plan/graph.ts'
import type { Workflow } from '../../../workflow/workflow.ts'
import { omitUndefined } from '../../request/fields.ts'

interface Described {
  readonly id: string
  readonly description?: string | undefined
  readonly metadata?: unknown
  readonly inputSchema?: Schema | undefined
  readonly outputSchema?: Schema | undefined
  readonly resumeSchema?: Schema | undefined
  readonly suspendSchema?: Schema | undefined
  readonly stateSchema?: Schema | undefined
}

const schemas = ['inputSchema', 'outputSchema', 'resumeSchema', 'suspendSchema', 'stateSchema'] as const

/** A workflow as clients read it, with its schemas as texts. `partial`: without its steps and schemas. */
export async function workflowInfo(workflow: Workflow, partial = false): Promise<object> {
  const { id, description, metadata, schedules, steps: stepGraph } = workflow.describe()
  const own = { id, name: id, schedules, ...omitUndefined({ description, metadata }) }
  if (partial) return { ...own, stepCount: stepGraph.length }
  const [about, steps, allSteps] = await Promise.all([
    described(workflow, `workflow '${id}'`), stepsById(workflow.graph, false), stepsById(workflow.graph, true),
  ])
  return { ...about, ...own, stepGraph, steps, allSteps }
}

/** `deep`: also those of workflows within, by their ids behind that of the workflow and a dot. */
async function stepsById(graph: WorkflowGraph, deep: boolean, above = ''): Promise<Record<string, object>> {
  const found = await Promise.all(graph.nodes.flatMap(childrenOf).map(async (child): Promise<Array<[string, object]>> => {
    const name = above + idOf(child)
    const one: [string, object] = [name, await childInfo(child)]
    return child.kind === 'workflow' && deep ? [one, ...Object.entries(await stepsById(child.graph, deep, `${name}.`))] : [one]
  }))
  return Object.fromEntries(found.flat())
}

function childInfo(child: Child): Promise<object> {
  const subject = `step '${idOf(child)}'`
  if (child.kind === 'step') return described(child.step, subject)
  return described(child.graph, subject).then((info) => ({ ...info, isWorkflow: true }))
}

function idOf(child: Child): string {
  return child.kind === 'step' ? child.step.id : child.id
}

async function described(one: Described, subject: string): Promise<object> {
  const texts = await Promise.all(schemas.map(async (name) => [name, await schemaText(one[name], `${name} of ${subject}`)] as const))
  const { id, description, metadata } = one
  return omitUndefined({ id, description, metadata, ...(Object.fromEntries(texts) as object) })
}

async function schemaText(schema: Schema | undefined, subject: string): Promise<string | undefined> {
  return schema === undefined ? undefined : JSON.stringify(await compileSchema(schema, subject).jsonSchema())
}

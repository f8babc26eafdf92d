import { HeedError } from '../base/errors.ts'
import { copyPlain, isObject, isSamePlain } from '../base/json.ts'
import type { Chunk } from '../message/chunk.ts'
import type { Message } from '../message/message.ts'
import { allHooks, type Hook } from '../processors/hooks.ts'
import type { Processor, ProcessorContext } from '../processors/processor.ts'
import { TripwireAbort } from '../processors/tripwire.ts'
import { hookNames } from './definition/hooks.ts'
import type { Child, WorkflowGraph } from './plan/graph.ts'
import { makeStep, type CodeStep, type Step } from './step.ts'

/**
 * What the steps of a workflow of processors pass on: `createWorkflow({ id, inputSchema: ProcessorStepSchema, outputSchema:
 * ProcessorStepSchema })`.
 */
export interface ProcessorData {
  /** Types only: no step reads it. Processors get the arguments of their hooks. */
  readonly phase: string
}

/** A step that calls a processor. */
export type ProcessorStep<Id extends string = string> =
  Step<`processor:${Id}`, ProcessorData | Record<string, ProcessorData>, ProcessorData, unknown>

/** The schema of workflows of processors. */
export const ProcessorStepSchema: {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: 'heed'
    readonly validate: (value: unknown) => { value: ProcessorData }
    readonly types?: { readonly input: ProcessorData; readonly output: ProcessorData }
  }
} = Object.freeze({
  '~standard': Object.freeze({ version: 1, vendor: 'heed', validate: (value: unknown) => ({ value: value as ProcessorData }) }),
})

const processors = new WeakMap<CodeStep, Processor>()

export function processorStep<Id extends string>(processor: Processor<Id>): ProcessorStep<Id> {
  const step = makeStep({
    id: `processor:${processor.id}`,
    execute() {
      throw new HeedError(
        'invalid_workflow',
        `Step 'processor:${processor.id}' is for workflows in inputProcessors and outputProcessors of an agent, which call it themselves.`,
      )
    },
  })
  processors.set(step, processor)
  return step as Step<string, never, unknown, never> as ProcessorStep<Id>
}

/** The hooks that a workflow can't have: they answer for the whole run. */
const alone: readonly Hook[] = ['computeStateSignal', 'processAPIError']

/**
 * The processors that a workflow stands for, in the order in which they are called. Steps in series are processors in a list; steps beside
 * each other become one processor. Planned once: no run is made of a chunk.
 */
export function processorsOf(graph: WorkflowGraph): Processor[] {
  const hook = hookNames.find((name) => graph.hooks?.[name] !== undefined)
  if (hook)
    throw new HeedError('invalid_workflow', `Workflow '${graph.id}' is in a list of processors, which makes no run of it: remove ${hook}.`)
  return graph.nodes.flatMap((node): Processor[] => {
    if (node.kind === 'step' || node.kind === 'workflow') return inSeries(graph, node)
    if (node.kind === 'parallel') return [beside(graph.id, node.children.map((child) => inSeries(graph, child)))]
    const advice = node.kind === 'map' ? ' What processors beside each other changed is joined by itself: leave map() out.' : ''
    throw new HeedError(
      'invalid_workflow',
      `Workflow '${graph.id}' is in a list of processors and has ${node.kind}. Such a workflow has then() and parallel() of processors `
        + `only.${advice}`,
    )
  })
}

function inSeries(graph: WorkflowGraph, child: Child): Processor[] {
  if (child.kind === 'workflow') return processorsOf(child.graph)
  const processor = processors.get(child.step)
  if (!processor)
    throw new HeedError(
      'invalid_workflow',
      `Workflow '${graph.id}' is in a list of processors: its step '${child.step.id}' must be made of a processor, createStep(processor).`,
    )
  const hook = alone.find((name) => processor[name] !== undefined)
  if (hook)
    throw new HeedError(
      'invalid_workflow',
      `Processor '${processor.id}' in workflow '${graph.id}' has ${hook}, which a workflow can't call. Put it into the list itself.`,
    )
  return [processor]
}

type Args = ProcessorContext & { messages?: Message[]; part?: Chunk; result?: unknown; systemMessages?: unknown[] }
type Call = (args: unknown) => unknown

/** One processor that calls several lists of processors beside each other, and joins what they changed. */
function beside(workflowId: string, lists: ReadonlyArray<readonly Processor[]>): Processor {
  const id = `${workflowId}(${lists.map((list) => list.map((one) => one.id).join('+')).join('|')})`
  const joined: { id: string; timeoutMs?: number } & Partial<Record<Hook, Call>> = { id }
  const limits = lists.flat().flatMap(({ timeoutMs }) => timeoutMs ?? [])
  if (limits.length > 0) joined.timeoutMs = limits.reduce((sum, limit) => sum + limit, 0)
  for (const hook of allHooks) {
    if (!lists.flat().some((processor) => processor[hook] !== undefined)) continue
    joined[hook] = async (given: unknown) => {
      const args = given as Args
      const states = args.state as Record<string, Record<string, unknown>>
      const results = await Promise.all(lists.map((list, index) => through(list, hook, args, (states[String(index)] ??= {}))))
      return hook === 'processOutputStream' ? joinOne(id, args.part, results.map((left) => left.part))
        : hook === 'processToolResult' ? { result: joinOne(id, args.result, results.map((left) => left.result)) }
        : joinMessages(id, args.messages ?? [], results.map((left) => left.messages))
    }
  }
  return joined as unknown as Processor
}

interface Left {
  messages: Message[]
  part: Chunk | null | undefined
  result: unknown
}

/** Calls processors one after the other, each on what the one before it left. */
async function through(list: readonly Processor[], hook: Hook, args: Args, states: Record<string, unknown>): Promise<Left> {
  const left: Left = { messages: copyPlain(args.messages ?? []), part: copyPlain(args.part), result: copyPlain(args.result) }
  for (const [index, processor] of list.entries()) {
    const call = processor[hook] as Call | undefined
    if (!call || left.part === null) continue
    let rejection: TripwireAbort | undefined
    const abort: ProcessorContext['abort'] = (reason, { retry, metadata } = {}) => {
      throw (rejection = new TripwireAbort({
        reason: reason ?? `Rejected by ${processor.id}`, processorId: processor.id,
        ...(retry ? { retry } : {}), ...(metadata === undefined ? {} : { metadata }),
      }))
    }
    const own: Args = { ...args, abort, state: (states[String(index)] ??= {}) as Record<string, unknown> }
    if (args.messages) own.messages = left.messages
    if (left.part) own.part = left.part
    if ('result' in args && hook === 'processToolResult') own.result = left.result
    withoutList(own, processor.id)
    const returned = await Promise.resolve().then(() => call.call(processor, own)).catch((error: unknown) => {
      throw rejection ?? error
    })
    // A rejection counts, also where the processor caught its error.
    if (rejection) throw rejection
    apply(left, hook, returned, processor.id)
  }
  return left
}

/** Processors beside each other can't share one list. */
function withoutList(args: Args, processorId: string): void {
  if (!('messageList' in args)) return
  Object.defineProperty(args, 'messageList', {
    get() {
      throw new Error(
        `'${processorId}' is beside other processors in a workflow, where it has messages and no messageList: return the messages.`,
      )
    },
  })
}

function apply(left: Left, hook: Hook, returned: unknown, processorId: string): void {
  if (returned === undefined) return
  if (hook === 'processOutputStream') left.part = returned as Chunk | null
  else if (hook === 'processToolResult') left.result = isObject(returned) && 'result' in returned ? returned.result : left.result
  else if (Array.isArray(returned)) left.messages = returned as Message[]
  else if (isObject(returned) && Object.keys(returned).every((key) => key === 'messages')) {
    left.messages = (returned.messages as Message[] | undefined) ?? left.messages
  } else throw new Error(`'${processorId}' is beside other processors in a workflow, where it may return messages only.`)
}

/** One value that several may have changed. */
function joinOne<T>(id: string, before: T, after: readonly T[]): T {
  const changed = after.filter((one) => !isSamePlain(one, before))
  const [first] = changed
  if (changed.length === 0) return before
  if (changed.some((one) => !isSamePlain(one, first)))
    throw new Error(`processors of ${id} beside each other made different changes. Put them in series.`)
  return first as T
}

/** The messages with what each processor changed, removed and added. */
function joinMessages(id: string, before: readonly Message[], after: ReadonlyArray<readonly Message[]>): Message[] {
  const known = new Set(before.map((message) => message.id))
  const kept = before.flatMap((message) => {
    const versions = after.map((list) => list.find((one) => one.id === message.id))
    if (versions.includes(undefined)) return []
    return [joinOne(id, message, versions as Message[])]
  })
  return [...kept, ...after.flatMap((list) => list.filter((message) => !known.has(message.id)))]
}

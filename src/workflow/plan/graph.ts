import { HeedError } from '../../base/errors.ts'
import type { RequestContext } from '../../run/request-context.ts'
import type { Schema } from '../../schema/schema.ts'
import type { WorkflowHooks } from '../definition/hooks.ts'
import type { AnyStep, CodeStep } from '../step.ts'

/**
 * A workflow as data: what a run is planned by. Frozen, so that all runs of a process share it, and compared by `shape` with the runs that
 * other versions of the code began.
 */
export interface WorkflowGraph extends NodeAbout {
  readonly id: string
  readonly nodes: readonly Node[]
  readonly inputSchema: Schema | undefined
  readonly outputSchema: Schema | undefined
  readonly stateSchema: Schema | undefined
  /** What a run may be started with. */
  readonly requestContextSchema?: Schema | undefined
  readonly retry: { readonly attempts: number; readonly delay: number }
  readonly validateInputs: boolean
  readonly hooks?: WorkflowHooks | undefined
}

/** What a condition, a map or a computed time reads. */
export interface AskContext {
  inputData: unknown
  state: unknown
  getInitData<T = unknown>(): T
  getStepResult(step: AnyStep | string): unknown
  /** In conditions of loops: how often the step has run. */
  iterationCount: number
  requestContext: RequestContext
  runId: string
  workflowId: string
  resourceId?: string
}

export type Ask<Answer> = (context: AskContext) => Answer | Promise<Answer>

/** A step, or a workflow in its place. */
export type Child =
  | { readonly kind: 'step'; readonly step: CodeStep }
  | { readonly kind: 'workflow'; readonly id: string; readonly graph: WorkflowGraph }

/** What says more about a place of a workflow, for lists and pages. */
export interface NodeAbout {
  readonly description?: string | undefined
  readonly metadata?: Readonly<Record<string, unknown>> | undefined
}

/** The same of a place that has no name of its own: it is named by its steps unless it is given an id. */
interface Named extends NodeAbout {
  readonly id?: string | undefined
}

export type Node =
  | Child
  | NodeAbout & { readonly kind: 'map'; readonly id: string; readonly ask: Ask<unknown> }
  | NodeAbout & { readonly kind: 'sleep'; readonly id: string; readonly ask: Ask<number> }
  | NodeAbout & { readonly kind: 'sleepUntil'; readonly id: string; readonly ask: Ask<Date> }
  | EventNode
  | Named & { readonly kind: 'parallel'; readonly children: readonly Child[] }
  | BranchNode
  | Named & { readonly kind: 'foreach'; readonly child: Child; readonly concurrency: number | Ask<number> }
  | Named & { readonly kind: 'loop'; readonly child: Child; readonly ask: Ask<boolean>; readonly until: boolean }

export interface EventNode extends NodeAbout {
  readonly kind: 'event'
  readonly id: string
  readonly name: string
  readonly schema: Schema | undefined
  readonly timeoutMs: number | undefined
}

interface BranchNode extends Named {
  readonly kind: 'branch'
  readonly conditions: ReadonlyArray<Ask<boolean>>
  readonly children: readonly Child[]
  /** Only the first whose condition is true. */
  readonly first: boolean
}

/** The name of a child in the output of `parallel` and `branch`, and in `getStepResult`. */
export function childId(child: Child): string {
  return child.kind === 'step' ? child.step.id : child.id
}

/** The steps and workflows of a node. */
export function childrenOf(node: Node): readonly Child[] {
  if (node.kind === 'step' || node.kind === 'workflow') return [node]
  if (node.kind === 'parallel' || node.kind === 'branch') return node.children
  return node.kind === 'foreach' || node.kind === 'loop' ? [node.child] : []
}

/** All steps of a graph, those of workflows within included. */
export function stepsOf(graph: WorkflowGraph): CodeStep[] {
  return graph.nodes.flatMap(childrenOf).flatMap((child) => (child.kind === 'step' ? [child.step] : stepsOf(child.graph)))
}

/** The id of a node in rows, chunks and shapes. */
export function nodeId(node: Node): string {
  if ('id' in node && node.id !== undefined) return node.id
  return node.kind === 'step' ? node.step.id : childrenOf(node).map(childId).join('|')
}

/** Throws what is wrong with a graph, before any run of it. */
export function checkGraph(graph: WorkflowGraph): void {
  const who = `Workflow '${graph.id}'`
  if (graph.nodes.length === 0) throw new HeedError('invalid_workflow', `${who} has no step. Add one with then() before commit().`)
  const seen = new Set<string>()
  for (const node of graph.nodes) {
    if (node.kind === 'parallel' || node.kind === 'branch') checkNames(who, node)
    for (const id of new Set(ownIds(node))) {
      // The output of a step is found by its id: two steps of one id would hide each other.
      if (seen.has(id)) {
        throw new HeedError(
          'invalid_workflow', `${who} has two steps '${id}'. Give one of them another id: cloneStep(step, { id }).`,
          { details: { stepId: id } },
        )
      }
      seen.add(id)
    }
  }
}

function checkNames(who: string, { kind, children }: Extract<Node, { kind: 'parallel' | 'branch' }>): void {
  const ids = children.map(childId)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined) {
    throw new HeedError(
      'invalid_workflow', `${who}: ${kind}() has two steps '${twice}', whose outputs would have one name. Use cloneStep().`,
      { details: { stepId: twice } },
    )
  }
  if (children.length === 0) throw new HeedError('invalid_workflow', `${who}: ${kind}() needs at least one step.`)
}

function ownIds(node: Node): string[] {
  const children = childrenOf(node)
  // The same event may be awaited twice.
  return children.length > 0 ? children.map(childId) : node.kind === 'event' ? [] : [nodeId(node)]
}

/**
 * The node that a path names, with what it is compared by: kind and id. Undefined where the graph has none: the path was recorded by
 * another version of the code.
 */
export function shapeAt(graph: WorkflowGraph, path: string): string | undefined {
  const [own = '', ...below] = path.split('/')
  if (own === '<' || own === '>') return `workflow${own} ${graph.id}`
  const found = /^(\d+)(?:\.(\d+)|\[\d+\]|#\d+)?(\?)?$/.exec(own)
  const node = found ? graph.nodes[Number(found[1])] : undefined
  if (!found || !node) return undefined
  if (found[3] !== undefined) return `${node.kind}? ${nodeId(node)}`
  const children = childrenOf(node)
  const child = children.length === 0 ? undefined : children[found[2] === undefined ? 0 : Number(found[2])]
  if (below.length > 0) return child?.kind === 'workflow' ? shapeAt(child.graph, below.join('/')) : undefined
  if (children.length === 0) return `${node.kind} ${nodeId(node)}`
  return child && `${child.kind} ${childId(child)}`
}

/** The graph that the path of a step lies in, and the step's own path below it: `2/0` lies in the workflow at `2`. */
export function graphPath(path: string): string {
  const end = path.lastIndexOf('/')
  return end === -1 ? '' : path.slice(0, end + 1)
}

/** The kinds of nodes that a run has to wait for. */
export function waits(graph: WorkflowGraph): boolean {
  return graph.nodes.some((node) => (
    node.kind === 'sleep' || node.kind === 'sleepUntil' || node.kind === 'event'
      || childrenOf(node).some((child) => child.kind === 'workflow' && waits(child.graph))
  ))
}

/** Whether the graph has a `foreach()`, also in a workflow within. */
export function hasLists(graph: WorkflowGraph): boolean {
  return graph.nodes.some((node) => (
    node.kind === 'foreach' || childrenOf(node).some((child) => child.kind === 'workflow' && hasLists(child.graph))
  ))
}

/** A place of a workflow as lists and pages have it. */
export interface DescribedNode extends NodeAbout {
  type: string
  id: string
  steps?: DescribedNode[]
}

/** The graph as JSON, for lists and pages. */
export function describeGraph(graph: WorkflowGraph): DescribedNode[] {
  return graph.nodes.map((node) => {
    if (node.kind === 'step' || node.kind === 'workflow') return describeChild(node)
    const children = childrenOf(node)
    return { type: node.kind, id: nodeId(node), ...aboutOf(node), ...(children.length > 0 ? { steps: children.map(describeChild) } : {}) }
  })
}

function describeChild(child: Child): DescribedNode {
  return child.kind === 'step' ? { type: 'step', id: child.step.id, ...aboutOf(child.step) }
    : { type: 'workflow', id: child.id, ...aboutOf(child.graph), steps: describeGraph(child.graph) }
}

function aboutOf({ description, metadata }: NodeAbout): NodeAbout {
  return { ...(description === undefined ? {} : { description }), ...(metadata === undefined ? {} : { metadata }) }
}

import { checkNames, checkWhole, refused } from '../base/arguments.ts'
import type { JSONValue } from '../base/json.ts'
import { validated } from './call-step.ts'
import { toJSONValue } from './json-value.ts'
import { childrenOf, nodeId, type Child, type Node, type WorkflowGraph } from './plan/graph.ts'
import { orderOf, isBefore, rowsBefore, stepAt, type StepRow } from './plan/plan.ts'
import { nameOf, type StoredRun } from './place/stored-run.ts'
import type { CodeStep } from './step.ts'

/** What a step before the target of `timeTravel()` has given: a record of `steps` of a result, or its `output` alone. */
export interface GivenStep {
  status?: 'success'
  payload?: unknown
  output?: unknown
  startedAt?: number
  endedAt?: number
}

const givenNames = ['status', 'payload', 'output', 'startedAt', 'endedAt']

/** Where a run begins again, and with what. */
export interface Travel {
  /** The name of the step, as callers have it. */
  step: string
  inputData: unknown
  resumeData: unknown
  context: Readonly<Record<string, GivenStep>> | undefined
}

/** Whether callers may mean this row by the name: the id of its step, its name as in `steps`, or its path. */
function isNamed(graph: WorkflowGraph, { path, stepId }: StepRow, name: string): boolean {
  return path === name || stepId === name || nameOf(graph, path, stepId) === name
}

/** Whether a step that waits is named, or is in the workflow that is. */
export function isMeant(graph: WorkflowGraph, row: StepRow, name: string): boolean {
  return isNamed(graph, row, name) || nameOf(graph, row.path, row.stepId).startsWith(`${name}.`)
}

/** The rows that a run begins with which begins again from a step, and the path of that step. */
export async function travelRows(graph: WorkflowGraph, stored: StoredRun, travel: Travel): Promise<{ rows: StepRow[]; path: string }> {
  const recorded = recordedStep(graph, stored, travel.step)
  const target = recorded ?? placeIn(graph, travel.step, stored.head.runId)
  const { path } = target
  const now = stored.head.updatedAt
  const rows = new Map(rowsBefore(stored.rows, path).map((row) => [row.path, row]))
  for (const [name, given] of Object.entries(travel.context ?? {})) {
    const row = givenRow(graph, stored, name, given, now)
    if (row.path === path || !isBefore(orderOf(row.path), orderOf(path)))
      throw refused('context', `about steps before '${travel.step}', which '${name}' is not`)
    rows.set(row.path, row)
    // What maps behind it made, they made of what was recorded.
    for (const { path: later, kind } of rows.values())
      if (kind === 'ask' && !later.endsWith('?') && isBefore(orderOf(row.path), orderOf(later))) rows.delete(later)
  }
  if (!recorded) new Way(graph, rows, now).lead(path)
  if (travel.inputData === undefined && travel.resumeData === undefined) return { rows: [...rows.values()], path }
  const step = stepAt(graph, path)
  const input = toJSONValue(travel.inputData, `the input of step '${target.stepId}'`)
  const resume = travel.resumeData === undefined ? undefined : await resumeOf(step, travel.resumeData)
  rows.set(path, {
    path, stepId: target.stepId, kind: 'step', status: 'waiting', attempt: 0, dueAt: now, startedAt: now,
    ...(input === undefined ? {} : { input }),
    ...(resume === undefined ? {} : { resume, suspend: { count: 1, ...payloadOf(recorded) } }),
  })
  return { rows: [...rows.values()], path }
}

async function resumeOf(step: CodeStep | undefined, resumeData: unknown): Promise<JSONValue | undefined> {
  const subject = `resumeData of step '${step?.id ?? '?'}'`
  return toJSONValue(await validated(step?.resumeSchema, resumeData, subject, 'invalid_argument'), subject)
}

/** What the step had asked. A call of an agent that it waited for belongs to the run that made it. */
function payloadOf(row: StepRow | undefined): { payload?: JSONValue } {
  return row?.suspend?.payload === undefined ? {} : { payload: row.suspend.payload }
}

function recordedStep(graph: WorkflowGraph, { rows }: StoredRun, name: string): StepRow | undefined {
  return rows.find((row) => row.path === name) ?? rows.find((row) => row.kind === 'step' && isNamed(graph, row, name))
}

function givenRow(graph: WorkflowGraph, stored: StoredRun, name: string, given: GivenStep, now: number): StepRow {
  const who = `context.${name}`
  checkNames(who, given, givenNames)
  if (given.status !== undefined && given.status !== 'success')
    throw refused(`${who}.status`, "'success': a step that ended otherwise gives nothing")
  const { path, stepId } = recordedStep(graph, stored, name) ?? placeIn(graph, name, stored.head.runId)
  const [input, output] = [toJSONValue(given.payload, `${who}.payload`), toJSONValue(given.output, `${who}.output`)]
  const { startedAt = now, endedAt = now } = given
  for (const [field, time] of Object.entries({ startedAt, endedAt })) checkWhole(`${who}.${field}`, time)
  return {
    path, stepId, kind: 'step', status: 'success', attempt: 1, startedAt, endedAt, ...(input === undefined ? {} : { input }),
    ...(output === undefined ? {} : { output }),
  }
}

interface PlacedStep {
  path: string
  stepId: string
  name: string
}

/** The step that a name stands for in the graph, of a run that has not begun it. In lists and loops it has no place before that. */
function placeIn(graph: WorkflowGraph, name: string, runId: string): PlacedStep {
  const found = placedSteps(graph).filter((step) => [step.path, step.stepId, step.name].includes(name))
  const exact = found.find((step) => step.path === name || step.name === name)
  const [only] = exact ? [exact] : found
  if (only && (exact || found.length === 1)) return only
  if (found.length > 1) throw refused('step', `the name of one of these steps: ${found.map((step) => step.name).join(', ')}`)
  throw refused('step', `a step that run '${runId}' has begun, or one of the workflow outside of foreach() and loops; '${name}' is none`)
}

function placedSteps(graph: WorkflowGraph, prefix = '', above: readonly string[] = []): PlacedStep[] {
  return graph.nodes.flatMap((node, index) => {
    const path = `${prefix}${index}`
    if (node.kind === 'foreach' || node.kind === 'loop') return []
    const isBeside = node.kind === 'parallel' || node.kind === 'branch'
    return childrenOf(node).flatMap((child, nth) => placedIn(child, isBeside ? `${path}.${nth}` : path, above))
  })
}

function placedIn(child: Child, path: string, above: readonly string[]): PlacedStep[] {
  if (child.kind === 'workflow') return placedSteps(child.graph, `${path}/`, [...above, child.id])
  return [{ path, stepId: child.step.id, name: [...above, child.step.id].join('.') }]
}

/** The way to a step that a run has not reached: what comes before it must be recorded, and branches must lead to it. */
class Way {
  readonly #graph: WorkflowGraph
  readonly #rows: Map<string, StepRow>
  readonly #now: number

  constructor(graph: WorkflowGraph, rows: Map<string, StepRow>, now: number) {
    this.#graph = graph
    this.#rows = rows
    this.#now = now
  }

  lead(path: string, graph = this.#graph, prefix = ''): void {
    const [, index = '', beside, rest] = /^(\d+)(?:\.(\d+))?(?:\/(.*))?$/.exec(path) ?? []
    const node = graph.nodes[Number(index)]
    if (!node) return
    for (const [nth, before] of graph.nodes.slice(0, Number(index)).entries()) this.#require(before, `${prefix}${nth}`)
    const child = childrenOf(node)[Number(beside ?? 0)]
    if (node.kind === 'branch') this.#choose(node, `${prefix}${index}`, [Number(beside)])
    if (rest !== undefined && child?.kind === 'workflow') this.lead(rest, child.graph, `${prefix}${path.slice(0, -rest.length)}`)
  }

  #require(node: Node, path: string): void {
    const children = childrenOf(node)
    if (node.kind === 'foreach' || node.kind === 'loop') {
      const first = `${path}${node.kind === 'foreach' ? '[' : '#'}0`
      if (![...this.#rows.keys()].some((key) => key.startsWith(first))) throw unrecorded(nodeId(node))
    } else if (node.kind === 'branch') {
      const chosen = (this.#rows.get(`${path}?`)?.output as number[] | undefined)
        ?? children.flatMap((_, nth) => (this.#has(`${path}.${nth}`) ? nth : []))
      if (chosen.length === 0 && !this.#rows.has(`${path}?`)) throw unrecorded(nodeId(node))
      this.#choose(node, path, chosen)
    } else {
      for (const [nth, child] of children.entries()) this.#requireChild(child, node.kind === 'parallel' ? `${path}.${nth}` : path)
    }
  }

  #requireChild(child: Child, path: string): void {
    if (child.kind === 'step' && !this.#has(path)) throw unrecorded(child.step.id)
    if (child.kind === 'workflow' && ![...this.#rows.values()].some((row) => row.bailed && row.path.startsWith(`${path}/`)))
      for (const [nth, node] of child.graph.nodes.entries()) this.#require(node, `${path}/${nth}`)
  }

  #has(path: string): boolean {
    return [...this.#rows.keys()].some((key) => key === path || key.startsWith(`${path}/`))
  }

  /** Without this, the conditions would be asked, and might lead elsewhere. */
  #choose(node: Node, path: string, chosen: number[]): void {
    const key = `${path}?`
    if (this.#rows.has(key)) return
    const row = { path: key, stepId: nodeId(node), kind: 'ask', status: 'success', attempt: 1, output: chosen } as const
    this.#rows.set(key, { ...row, startedAt: this.#now, endedAt: this.#now })
  }
}

function unrecorded(id: string): Error {
  return refused('step', `one behind steps that have a record, and '${id}' before it has none. Say in context what it has given`)
}

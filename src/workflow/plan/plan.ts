import type { JSONObject, JSONValue } from '../../base/json.ts'
import type { ChildCall } from '../../message/chunk.ts'
import { childId, graphPath, nodeId, shapeAt, type Ask, type Child, type Node, type WorkflowGraph } from './graph.ts'
import type { StepStatus } from './machine.ts'
import type { CodeStep } from '../step.ts'

/** What is recorded of one step of one run. Its key is its path: a step in a loop has a row for each time that it runs. */
export interface StepRow {
  /**
   * `2`; of several beside each other `2.1`; of a list `3[7]`; of a loop `4#2`; of a workflow within `2/0`; of a condition `4#2?`; of the
   * schemas of a workflow `2/<` and `2/>`.
   */
  readonly path: string
  readonly stepId: string
  readonly kind: 'step' | 'ask' | 'event' | 'sleep'
  status: StepStatus
  /** How often it has begun. */
  attempt: number
  input?: JSONValue
  output?: JSONValue
  error?: JSONObject
  /** How often it has failed. */
  failures?: number
  /** What it suspended with, last. `count` is how often it has suspended, `child` the call of an agent that it waits for. */
  suspend?: { payload?: JSONValue; label?: string; count: number; child?: ChildCall }
  resume?: JSONValue
  /** When it goes on by itself. */
  dueAt?: number
  /** It ended the workflow that it is in, as a success. */
  bailed?: true
  startedAt: number
  endedAt?: number
  suspendedAt?: number
  resumedAt?: number
}

/** A step that may begin. `row`: it has begun before. */
export interface Begin {
  path: string
  step: CodeStep
  graph: WorkflowGraph
  input: JSONValue | undefined
  row?: StepRow
}

/**
 * A question whose answer is to be stored: a map, a condition, the time of a sleep, the wait for an event, what the schemas of a workflow
 * make of its input and output, and whether the run may start.
 */
export interface Question {
  path: string
  id: string
  kind: 'map' | 'condition' | 'conditions' | 'concurrency' | 'sleep' | 'sleepUntil' | 'event' | 'input' | 'output' | 'start'
  graph: WorkflowGraph
  /** Absent for the schemas of a workflow. */
  node?: Node
  ask?: Ask<unknown>
  input: JSONValue | undefined
  iterationCount: number
}

export type PlanEnd =
  | { status: 'success'; output: JSONValue | undefined }
  | { status: 'failed'; path: string; error: JSONObject }

/** What a run does next. Where nothing begins, is asked or runs, it waits for a time, an event or a caller. */
export interface Plan {
  begin: Begin[]
  ask: Question[]
  /** Sleeps and waits that are over: their rows end. */
  due: StepRow[]
  /** Elements of lists whose turn has ended, or is suspended, since the last plan. */
  progress: ListProgress[]
  end?: PlanEnd
}

/** What became of one element of a list. */
export interface ListProgress {
  id: string
  completedCount: number
  totalCount: number
  currentIndex: number
  iterationStatus: 'success' | 'failed' | 'suspended'
  iterationOutput?: JSONValue | undefined
}

/** How far a list has come. */
interface ListState {
  /** The first element that is not done. */
  index: number
  done: number
  outputs: Array<JSONValue | undefined>
  /** How often an element was suspended when that was reported last. */
  suspended: Map<number, number>
}

/** The path of the answer of `onStart`: before all others. */
export const startPath = '<'

type Outcome =
  | { status: 'done'; output: JSONValue | undefined }
  | { status: 'bailed'; output: JSONValue | undefined }
  | { status: 'failed'; path: string; error: JSONObject }
  | undefined

/**
 * Plans a run: a pure function of the graph, the rows, the input and the time. What has ended stays ended, so that a planner remembers how
 * far each sequence has come, and the cost of a step does not grow with what came before.
 */
export class Planner {
  readonly #graph: WorkflowGraph
  readonly #rows: ReadonlyMap<string, StepRow>
  readonly #input: JSONValue | undefined
  /** Of each sequence, list and loop: the first index that is not done, and what it has as input or output so far. */
  readonly #sequences = new Map<string, { index: number; value: JSONValue | undefined }>()
  /** The outputs of steps, maps and workflows that are done, by the prefix of their sequence and their id. The last one counts. */
  readonly outputs = new Map<string, JSONValue | undefined>()
  readonly #lists = new Map<string, ListState>()
  readonly #inputs = new Map<string, JSONValue | undefined>()
  readonly #asksStart: boolean
  #now = 0
  #plan: Plan = newPlan()

  /** `isNew`: no process has run it. A run that goes on in code with another `onStart` has started already. */
  constructor(graph: WorkflowGraph, rows: ReadonlyMap<string, StepRow>, input: JSONValue | undefined, isNew = false) {
    this.#graph = graph
    this.#rows = rows
    this.#input = input
    this.#asksStart = graph.hooks?.onStart !== undefined && (isNew || rows.has(startPath))
  }

  /** The input of the workflow whose paths begin with this prefix. */
  inputOf(prefix: string): JSONValue | undefined {
    return this.#inputs.get(prefix)
  }

  plan(now: number): Plan {
    this.#now = now
    this.#plan = newPlan()
    const outcome = this.#started() ?? this.#sequence(this.#graph, '', this.#input)
    if (outcome === 'asked') return this.#plan
    if (outcome?.status === 'failed') return { ...newPlan(), progress: this.#plan.progress, end: outcome }
    if (outcome) this.#plan.end = { status: 'success', output: outcome.output }
    return this.#plan
  }

  /** Whether the run may start: asked before anything else. */
  #started(): Extract<Outcome, { status: 'failed' }> | 'asked' | undefined {
    if (!this.#asksStart) return undefined
    const row = this.#rows.get(startPath)
    if (!row) {
      const graph = this.#graph
      this.#plan.ask.push({ path: startPath, id: graph.id, kind: 'start', graph, input: this.#input, iterationCount: 0 })
      return 'asked'
    }
    const outcome = ended(row)
    return outcome?.status === 'failed' ? outcome : undefined
  }

  #sequence(graph: WorkflowGraph, prefix: string, input: JSONValue | undefined): Outcome {
    let at = this.#sequences.get(prefix)
    if (!at) {
      this.#sequences.set(prefix, (at = { index: 0, value: input }))
      this.#inputs.set(prefix, input)
    }
    for (; at.index < graph.nodes.length; at.index++) {
      const outcome = this.#node(graph, graph.nodes[at.index] as Node, `${prefix}${at.index}`, at.value)
      if (outcome?.status === 'bailed') return { status: 'done', output: outcome.output }
      if (outcome?.status !== 'done') return outcome
      at.value = outcome.output
    }
    return this.#checked(graph, `${prefix}>`, 'output', at.value)
  }

  /** What a schema of a workflow makes of a value. The input of the run was checked when it was started. */
  #checked(graph: WorkflowGraph, path: string, kind: 'input' | 'output', input: JSONValue | undefined): Outcome {
    const isChecked = kind === 'output' ? graph.outputSchema !== undefined : graph.inputSchema !== undefined && this.#graph.validateInputs
    if (!isChecked) return { status: 'done', output: input }
    const row = this.#rows.get(path)
    if (!row) this.#plan.ask.push({ path, id: graph.id, kind, graph, input, iterationCount: 0 })
    return row && ended(row)
  }

  #within(graph: WorkflowGraph, path: string, input: JSONValue | undefined): Outcome {
    const checked = this.#checked(graph, `${path}/<`, 'input', input)
    return checked?.status === 'done' ? this.#sequence(graph, `${path}/`, checked.output) : checked
  }

  #node(graph: WorkflowGraph, node: Node, path: string, input: JSONValue | undefined): Outcome {
    switch (node.kind) {
      case 'step':
      case 'workflow':
        return this.#child(graph, node, path, input)
      case 'map':
        return this.#asked(graph, node, path, { kind: 'map', ask: node.ask, input, iterationCount: 0 })
      case 'sleep':
      case 'sleepUntil': {
        const slept = this.#asked(graph, node, path, { kind: node.kind, ask: node.ask, input, iterationCount: 0 })
        return slept?.status === 'done' ? { status: 'done', output: input } : slept
      }
      case 'event':
        return this.#asked(graph, node, path, { kind: 'event', input, iterationCount: 0 })
      case 'parallel':
        return this.#together(graph, node.children.map((child, index) => [child, index]), path, input)
      case 'branch': {
        const decided = this.#asked(graph, node, `${path}?`, { kind: 'conditions', input, iterationCount: 0 })
        if (decided?.status !== 'done') return decided
        const chosen = decided.output as number[]
        return this.#together(graph, chosen.flatMap((index) => {
          const child = node.children[index]
          return child ? [[child, index] as const] : []
        }), path, input)
      }
      case 'foreach':
        return this.#each(graph, node, path, input)
      case 'loop':
        return this.#loop(graph, node, path, input)
    }
  }

  #child(graph: WorkflowGraph, child: Child, path: string, input: JSONValue | undefined): Outcome {
    const outcome = child.kind === 'workflow' ? this.#within(child.graph, path, input) : this.#step(graph, child.step, path, input)
    if (outcome?.status === 'done') this.outputs.set(outputKey(path, childId(child)), outcome.output)
    return outcome
  }

  #step(graph: WorkflowGraph, step: CodeStep, path: string, input: JSONValue | undefined): Outcome {
    const row = this.#rows.get(path)
    if (!row) {
      this.#plan.begin.push({ path, step, graph, input })
      return undefined
    }
    if (row.status === 'waiting' && row.dueAt !== undefined && row.dueAt <= this.#now) {
      // One that has not begun gets what it would have got, unless it was given an input.
      this.#plan.begin.push({ path, step, graph, input: row.attempt === 0 && row.input === undefined ? input : row.input, row })
      return undefined
    }
    return ended(row)
  }

  #asked(
    graph: WorkflowGraph, node: Node, path: string, question: Pick<Question, 'kind' | 'ask' | 'input' | 'iterationCount'>,
  ): Outcome {
    const row = this.#rows.get(path)
    if (!row) this.#plan.ask.push({ path, id: nodeId(node), graph, node, ...question })
    else if (row.status === 'waiting' && row.dueAt !== undefined && row.dueAt <= this.#now) this.#plan.due.push(row)
    const outcome = row && ended(row)
    if (outcome?.status === 'done' && !decisions.has(question.kind))
      this.outputs.set(outputKey(path, nodeId(node)), outcome.output)
    return outcome
  }

  #together(graph: WorkflowGraph, children: ReadonlyArray<readonly [Child, number]>, path: string, input: JSONValue | undefined): Outcome {
    const outputs: JSONObject = {}
    let open = false
    for (const [child, index] of children) {
      const outcome = this.#child(graph, child, `${path}.${index}`, input)
      if (!outcome) open = true
      else if (outcome.status !== 'done') return outcome
      else outputs[childId(child)] = outcome.output
    }
    return open ? undefined : { status: 'done', output: outputs }
  }

  #each(graph: WorkflowGraph, node: Extract<Node, { kind: 'foreach' }>, path: string, input: JSONValue | undefined): Outcome {
    if (!Array.isArray(input)) {
      const message = `foreach() of '${childId(node.child)}' got ${input === null ? 'null' : typeof input} in place of a list.`
      return { status: 'failed', path, error: { name: 'HeedError', code: 'step_input_invalid', message } }
    }
    let most = node.concurrency
    if (typeof most === 'function') {
      const decided = this.#asked(graph, node, `${path}?`, { kind: 'concurrency', ask: most, input, iterationCount: 0 })
      if (decided?.status !== 'done') return decided
      most = Number(decided.output)
    }
    let at = this.#lists.get(path)
    if (!at) this.#lists.set(path, (at = { index: 0, done: 0, outputs: [], suspended: new Map() }))
    let open = 0
    for (let index = at.index; index < input.length && open < most; index++) {
      const outcome = this.#child(graph, node.child, `${path}[${index}]`, input[index])
      this.#tell(node.child, path, at, index, input.length, outcome)
      if (outcome && outcome.status !== 'done') return outcome
      if (!outcome) open++
      else if (index === at.index) at.index++
    }
    return open > 0 ? undefined : { status: 'done', output: at.outputs.map((output) => output ?? null) }
  }

  /** Records the output of an element of a list, and what is reported of it once. */
  #tell(child: Child, path: string, at: ListState, currentIndex: number, totalCount: number, outcome: Outcome): void {
    const told = { id: childId(child), totalCount, currentIndex }
    if (!outcome) {
      const { status, suspend } = this.#rows.get(`${path}[${currentIndex}]`) ?? {}
      if (status !== 'suspended' || !suspend || at.suspended.get(currentIndex) === suspend.count) return
      at.suspended.set(currentIndex, suspend.count)
      this.#plan.progress.push({ ...told, completedCount: at.done, iterationStatus: 'suspended' })
    } else if (outcome.status === 'failed') this.#plan.progress.push({ ...told, completedCount: at.done, iterationStatus: 'failed' })
    else if (outcome.status === 'done' && !(currentIndex in at.outputs)) {
      at.done++
      at.outputs[currentIndex] = outcome.output
      at.suspended.delete(currentIndex)
      this.#plan.progress.push({
        ...told, completedCount: at.done, iterationStatus: 'success', ...(outcome.output === undefined ? {} : {
          iterationOutput: outcome.output,
        }),
      })
    }
  }

  #loop(graph: WorkflowGraph, node: Extract<Node, { kind: 'loop' }>, path: string, input: JSONValue | undefined): Outcome {
    let at = this.#sequences.get(path)
    if (!at) this.#sequences.set(path, (at = { index: 0, value: input }))
    for (;; at.index++) {
      const outcome = this.#child(graph, node.child, `${path}#${at.index}`, at.value)
      if (outcome?.status !== 'done') return outcome
      const asked = this.#asked(graph, node, `${path}#${at.index}?`, {
        kind: 'condition', ask: node.ask, input: outcome.output, iterationCount: at.index + 1,
      })
      if (asked?.status !== 'done') return asked
      if ((asked.output === true) === node.until) return outcome
      at.value = outcome.output
    }
  }
}

/** Questions whose answers are no outputs. */
const decisions: ReadonlySet<Question['kind']> = new Set<Question['kind']>(['condition', 'conditions', 'concurrency'])

function newPlan(): Plan {
  return { begin: [], ask: [], due: [], progress: [] }
}

function ended(row: StepRow): Outcome {
  if (row.status === 'success') return { status: row.bailed ? 'bailed' : 'done', output: row.output }
  if (row.status === 'failed') return { status: 'failed', path: row.path, error: row.error ?? {} }
  return undefined
}

/** Plans a run from its rows alone. */
export function planRun(graph: WorkflowGraph, rows: ReadonlyMap<string, StepRow>, input: JSONValue | undefined, now: number): Plan {
  return new Planner(graph, rows, input).plan(now)
}

/** The rows of a run that are not after the path: those that a run which begins again from there keeps. */
export function rowsBefore(rows: Iterable<StepRow>, path: string): StepRow[] {
  const target = orderOf(path)
  return [...rows].filter((row) => row.status === 'success' && isBefore(orderOf(row.path), target))
}

/** The numbers of a path with what they count. */
export function orderOf(path: string): Array<{ mark: string; index: number }> {
  return [...path.matchAll(/([./[#]?)(\d+)\]?/g)].map(([, mark = '', index]) => ({ mark, index: Number(index) }))
}

/** Whether a path is before another: earlier in the sequence or loop they share, or beside it in a list or in parallel. */
export function isBefore(one: ReturnType<typeof orderOf>, other: ReturnType<typeof orderOf>): boolean {
  for (const [position, { mark, index }] of one.entries()) {
    const at = other[position]
    if (!at) return false
    if (index === at.index) continue
    // Steps beside each other do not depend on each other.
    return mark === '.' || mark === '[' ? true : index < at.index
  }
  // What was decided about a branch or a list came before its steps.
  const below = other[one.length]?.mark
  return below === '.' || below === '['
}

/** The key of an output: the sequence that the step is in, and its id. */
export function outputKey(path: string, id: string): string {
  return `${graphPath(path)}:${id}`
}

/** The number of the element of a list that a step belongs to; undefined for a step in none. */
export function elementOf(path: string): number | undefined {
  const found = /^.*\[(\d+)\]/.exec(path)?.[1]
  return found === undefined ? undefined : Number(found)
}

/** The step that a path names. */
export function stepAt(graph: WorkflowGraph, path: string): CodeStep | undefined {
  const [own = '', ...below] = path.split('/')
  const [, index, beside] = /^(\d+)(?:\.(\d+))?/.exec(own) ?? []
  const node = graph.nodes[Number(index)]
  if (!node) return undefined
  const child = node.kind === 'step' || node.kind === 'workflow' ? node
    : node.kind === 'parallel' || node.kind === 'branch' ? node.children[Number(beside)]
    : node.kind === 'foreach' || node.kind === 'loop' ? node.child : undefined
  if (child?.kind === 'workflow') return stepAt(child.graph, below.join('/'))
  return child?.step
}

/** The earliest time at which a step goes on by itself. */
export function nextDue(rows: Iterable<StepRow>): number | undefined {
  let due: number | undefined
  for (const { status, dueAt } of rows) if (status === 'waiting' && dueAt !== undefined && (due === undefined || dueAt < due)) due = dueAt
  return due
}

/** The first recorded path whose step the graph does not have. */
export function firstChange(graph: WorkflowGraph, rows: ReadonlyMap<string, StepRow>): string | undefined {
  for (const { path, stepId, kind } of rows.values()) {
    if (path.startsWith('!')) continue
    const shape = shapeAt(graph, path)
    const name = shape?.slice(shape.indexOf(' ') + 1)
    const isSame = kind === 'event' ? shape?.startsWith('event ') : name === stepId
    if (!isSame) return path
  }
  return undefined
}

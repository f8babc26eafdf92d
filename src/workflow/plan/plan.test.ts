import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JSONValue } from '../../base/json.ts'
import type { Child, Node, WorkflowGraph } from './graph.ts'
import { Planner, planRun, type StepRow } from './plan.ts'
import { makeStep } from '../step.ts'

const numRuns = Number(process.env.HEED_PROPERTY_RUNS ?? 40)

/** A shape of a graph: what a node does with a number, or with the outputs of its steps. */
type Shape =
  | { kind: 'step' }
  | { kind: 'workflow'; nodes: Shape[] }
  | { kind: 'map' }
  | { kind: 'parallel'; children: Shape[] }
  | { kind: 'branch'; children: Shape[]; chosen: boolean[] }
  | { kind: 'foreach'; child: Shape; items: number; concurrency: number }
  | { kind: 'loop'; child: Shape; times: number }

const shapes = fc.letrec<{ node: Shape; child: Shape }>((tie) => ({
  child: fc.oneof({ maxDepth: 3 }, fc.constant<Shape>({ kind: 'step' }), fc.record({ kind: fc.constant('workflow' as const), nodes: fc.array(tie('node'), { minLength: 1, maxLength: 3 }) })),
  node: fc.oneof(
    { maxDepth: 3 },
    tie('child'),
    fc.constant<Shape>({ kind: 'map' }),
    fc.record({ kind: fc.constant('parallel' as const), children: fc.array(tie('child'), { minLength: 1, maxLength: 3 }) }),
    fc.array(fc.tuple(tie('child'), fc.boolean()), { minLength: 1, maxLength: 3 }).map((pairs): Shape => ({ kind: 'branch', children: pairs.map(([child]) => child), chosen: pairs.map(([, chosen]) => chosen) })),
    fc.record({ kind: fc.constant('foreach' as const), child: tie('child'), items: fc.nat(4), concurrency: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ kind: fc.constant('loop' as const), child: tie('child'), times: fc.integer({ min: 1, max: 3 }) }),
  ),
}))

let names = 0
const childOf = (shape: Shape): Child => shape.kind === 'workflow'
  ? { kind: 'workflow', id: `w${++names}`, graph: graphOf(shape.nodes) }
  : { kind: 'step', step: makeStep({ id: `s${++names}`, execute: () => 0 }) }

function nodesOf(shape: Shape): Node[] {
  const never = () => expect.unreachable()
  if (shape.kind === 'step' || shape.kind === 'workflow') return [childOf(shape)]
  if (shape.kind === 'map') return [{ kind: 'map', id: `m${++names}`, ask: never }]
  if (shape.kind === 'parallel') return [{ kind: 'parallel', children: shape.children.map(childOf) }]
  if (shape.kind === 'branch') return [{ kind: 'branch', children: shape.children.map(childOf), conditions: shape.chosen.map((chosen) => () => chosen), first: false }]
  if (shape.kind === 'loop') return [{ kind: 'loop', child: childOf(shape.child), until: true, ask: ({ iterationCount }) => iterationCount >= shape.times }]
  const list: Node = { kind: 'map', id: `list${++names}:${shape.items}`, ask: never }
  return [list, { kind: 'foreach', child: childOf(shape.child), concurrency: shape.concurrency }]
}

function graphOf(nodes: Shape[]): WorkflowGraph {
  return { id: `g${++names}`, nodes: nodes.flatMap(nodesOf), inputSchema: undefined, outputSchema: undefined, stateSchema: undefined, retry: { attempts: 0, delay: 0 }, validateInputs: true }
}

const outputOf = (path: string, input: JSONValue | undefined): JSONValue => `${path}(${JSON.stringify(input)})`
const answerTo = (id: string, path: string, input: JSONValue | undefined): JSONValue => {
  const items = /^list\d+:(\d+)$/.exec(id)?.[1]
  return items === undefined ? outputOf(path, input) : Array.from({ length: Number(items) }, (_, index) => index)
}

/** The plain interpreter: what a run of the graph gives. */
function interpret(graph: WorkflowGraph, prefix: string, input: JSONValue | undefined): JSONValue | undefined {
  return graph.nodes.reduce<JSONValue | undefined>((value, node, index) => interpretNode(node, `${prefix}${index}`, value), input)
}

function interpretChild(child: Child, path: string, input: JSONValue | undefined): JSONValue | undefined {
  return child.kind === 'workflow' ? interpret(child.graph, `${path}/`, input) : outputOf(path, input)
}

const idOf = (child: Child) => (child.kind === 'workflow' ? child.id : child.step.id)

function interpretNode(node: Node, path: string, input: JSONValue | undefined): JSONValue | undefined {
  if (node.kind === 'step' || node.kind === 'workflow') return interpretChild(node, path, input)
  if (node.kind === 'map') return answerTo(node.id, path, input)
  if (node.kind === 'parallel') return Object.fromEntries(node.children.map((child, index) => [idOf(child), interpretChild(child, `${path}.${index}`, input)]))
  if (node.kind === 'branch')
    return Object.fromEntries(node.children.flatMap((child, index) => (node.conditions[index]?.({} as never) ? [[idOf(child), interpretChild(child, `${path}.${index}`, input)]] : [])))
  if (node.kind === 'foreach') return (input as JSONValue[]).map((item, index) => interpretChild(node.child, `${path}[${index}]`, item) ?? null)
  if (node.kind !== 'loop') return expect.unreachable()
  let value = input
  for (let count = 1; ; count++) {
    value = interpretChild(node.child, `${path}#${count - 1}`, value)
    if (node.ask({ iterationCount: count } as never)) return value
  }
}

/** Executes a run in a random order of ends. Returns all rows in the order in which they were written, and the result. */
function execute(graph: WorkflowGraph, rows: Map<string, StepRow>, input: JSONValue, pick: (of: number) => number) {
  const planner = new Planner(graph, rows, input)
  const written: StepRow[] = []
  const running = [...rows.values()].filter((row) => row.status === 'running')
  const begun = new Set(rows.keys())
  const put = (row: StepRow) => {
    rows.set(row.path, row)
    written.push(row)
  }
  for (;;) {
    const plan = planner.plan(0)
    const fresh = planRun(graph, rows, input, 0)
    // A planner that remembers plans as one that reads all rows.
    expect(plan.begin.map(({ path }) => path)).toEqual(fresh.begin.map(({ path }) => path))
    expect(plan.end).toEqual(fresh.end)
    if (plan.end) return { written, end: plan.end }
    for (const { path, id, kind, node, input: asked, iterationCount } of plan.ask) {
      const output = kind === 'condition' && node?.kind === 'loop' ? Boolean(node.ask({ iterationCount } as never))
        : kind === 'conditions' && node?.kind === 'branch' ? node.conditions.flatMap((condition, index) => (condition({} as never) ? [index] : []))
        : answerTo(id, path, asked)
      put({ path, stepId: id, kind: 'ask', status: 'success', attempt: 1, output, startedAt: 0 })
    }
    for (const { path, step, input: given } of plan.begin) {
      // No path begins twice.
      expect(begun.has(path)).toBe(false)
      begun.add(path)
      const row: StepRow = { path, stepId: step.id, kind: 'step', status: 'running', attempt: 1, input: given ?? null, startedAt: 0 }
      put(row)
      running.push(row)
    }
    if (plan.ask.length > 0) continue
    expect(running.length).toBeGreaterThan(0)
    const [ended] = running.splice(pick(running.length), 1)
    if (ended) put({ ...ended, status: 'success', output: outputOf(ended.path, ended.input) })
  }
}

describe('the planner', () => {
  it('[F2.1] gives the result of a plain interpreter, whatever the order in which steps end, and begins no path twice', () => {
    fc.assert(fc.property(fc.array(shapes.node, { minLength: 1, maxLength: 4 }), fc.infiniteStream(fc.nat()), (nodes, random) => {
      const graph = graphOf(nodes)
      const { end } = execute(graph, new Map(), 'in', (of) => (random.next().value as number) % of)
      expect(end).toEqual({ status: 'success', output: interpret(graph, '', 'in') })
    }), { numRuns })
  })

  it('[F2.2] continues from any rows that a process has left as that process would have', () => {
    fc.assert(fc.property(fc.array(shapes.node, { minLength: 1, maxLength: 4 }), fc.infiniteStream(fc.nat()), fc.nat(), (nodes, random, cut) => {
      const graph = graphOf(nodes)
      const pick = (of: number) => (random.next().value as number) % of
      const { written, end } = execute(graph, new Map(), 'in', pick)
      const left = new Map(written.slice(0, cut % (written.length + 1)).map((row) => [row.path, row]))
      expect(execute(graph, left, 'in', pick).end).toEqual(end)
    }), { numRuns })
  })

  it('[F2.3] ends at the first failure, and begins nothing after it', () => {
    fc.assert(fc.property(fc.array(shapes.node, { minLength: 1, maxLength: 4 }), fc.infiniteStream(fc.nat()), fc.nat(), (nodes, random, at) => {
      const graph = graphOf(nodes)
      const { written } = execute(graph, new Map(), 'in', (of) => (random.next().value as number) % of)
      const steps = written.filter((row) => row.status === 'success' && row.kind === 'step')
      const failed = steps[at % Math.max(1, steps.length)]
      if (!failed) return
      const rows = new Map(written.slice(0, written.indexOf(failed)).map((row) => [row.path, row]))
      rows.set(failed.path, { ...failed, status: 'failed', error: { message: 'no' } })
      expect(planRun(graph, rows, 'in', 0)).toMatchObject({ begin: [], ask: [], due: [], end: { status: 'failed', path: failed.path, error: { message: 'no' } } })
    }), { numRuns })
  })
})

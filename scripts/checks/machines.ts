import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { signalTransitions, threadTransitions } from '../../src/machine.ts'
import type { CheckResult } from './report.ts'

/** The page that shows the machines. */
export const machinesPage = 'docs/threads.md'

type Transitions = Readonly<Record<string, Readonly<Record<string, string | undefined>>>>

const machines: Record<string, Transitions> = { thread: threadTransitions, signal: signalTransitions }

/** A machine as a Mermaid state diagram: the first state is where it begins, a state without a way out is where it ends. */
export function drawMachine(transitions: Transitions): string {
  const states = Object.keys(transitions)
  const lines = states.flatMap((from) => Object.entries(transitions[from] ?? {}).map(([event, to]) => `  ${from} --> ${to}: ${event}`))
  const ends = states.filter((state) => Object.keys(transitions[state] ?? {}).length === 0).map((state) => `  ${state} --> [*]`)
  return ['```mermaid', 'stateDiagram-v2', `  [*] --> ${states[0]}`, ...lines, ...ends, '```'].join('\n')
}

/** The page with each drawing between its markers as the tables have it now. */
export function withDrawings(page: string): string {
  return Object.entries(machines).reduce((text, [name, transitions]) => {
    const [start, end] = [`<!-- machine: ${name} -->`, `<!-- end: ${name} -->`]
    const from = text.indexOf(start)
    const to = text.indexOf(end)
    if (from === -1 || to < from) throw new Error(`${machinesPage} has no place for the ${name}: add the lines ${start} and ${end}.`)
    return `${text.slice(0, from + start.length)}\n${drawMachine(transitions)}\n${text.slice(to)}`
  }, page)
}

/** Whether the page shows the machines as they are. */
export function checkMachines(root: string): CheckResult {
  const page = readFileSync(join(root, machinesPage), 'utf8')
  const stale = page !== withDrawings(page)
  return {
    summary: `${Object.keys(machines).length} machines in ${machinesPage}`,
    problems: stale ? [`${machinesPage} shows machines that are no more: run node scripts/draw-machines.mjs.`] : [],
  }
}

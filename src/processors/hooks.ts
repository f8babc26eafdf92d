import { Seat } from './hook-args.ts'
import type { Processor } from './processor.ts'

export type Hook = Exclude<keyof Processor, 'id' | 'name' | 'stateId' | 'maxDeltas' | 'timeoutMs'>

/** The hooks that are asked of input processors, in the order of a step. */
export const inputHooks: readonly Hook[] = ['processInput', 'processInputStep', 'computeStateSignal', 'processAPIError']

/** Those that are asked of output processors. */
export const outputHooks: readonly Hook[] = ['processOutputStream', 'processOutputStep', 'processToolResult', 'processOutputResult', 'processAPIError']

export const allHooks: readonly Hook[] = [...new Set([...inputHooks, ...outputHooks])]

/** What a hook is given. */
export type HookArgs<Name extends Hook> = Parameters<NonNullable<Processor[Name]>>[0]

const nobody: readonly Seat[] = []

/** Those that have a hook, in their order. Looked for in every run: a list may change between two. */
export function having(seats: readonly Seat[], hook: Hook): readonly Seat[] {
  let found: Seat[] | undefined
  for (const seat of seats) {
    if (typeof seat.processor[hook] !== 'function') continue
    if (found) found.push(seat)
    else found = [seat]
  }
  return found ?? nobody
}

/** A processor that is in both lists, or twice in one, has one seat. */
export function seatsOf(input: readonly Processor[], output: readonly Processor[]): Record<'input' | 'output' | 'all', readonly Seat[]> {
  if (input.length + output.length === 0) return { input: nobody, output: nobody, all: nobody }
  const all: Seat[] = []
  const seated = (processor: Processor) => {
    // A run has a handful of them: looking through those costs less than keeping a map.
    for (const seat of all) if (seat.processor === processor) return seat
    const seat = new Seat(processor)
    all.push(seat)
    return seat
  }
  return { input: input.map(seated), output: output.map(seated), all }
}

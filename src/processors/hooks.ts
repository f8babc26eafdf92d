import type { Processor } from './processor.ts'

export type Hook = Exclude<keyof Processor, 'id' | 'name' | 'stateId' | 'maxDeltas' | 'timeoutMs'>

/** The hooks that are asked of input processors, in the order of a step. */
export const inputHooks: readonly Hook[] = ['processInput', 'processInputStep', 'computeStateSignal', 'processAPIError']

/** Those that are asked of output processors. */
export const outputHooks: readonly Hook[] = ['processOutputStream', 'processOutputStep', 'processToolResult', 'processOutputResult', 'processAPIError']

export const allHooks: readonly Hook[] = [...new Set([...inputHooks, ...outputHooks])]

/** What a hook is given. */
export type HookArgs<Name extends Hook> = Parameters<NonNullable<Processor[Name]>>[0]

/** Those that have a hook, in their order. Looked for in every run: a list may change between two. */
export function having(processors: readonly Processor[], hook: Hook): readonly Processor[] {
  let found: Processor[] | undefined
  for (const processor of processors) {
    if (typeof processor[hook] !== 'function') continue
    if (found) found.push(processor)
    else found = [processor]
  }
  return found ?? nobody
}

const nobody: readonly Processor[] = []

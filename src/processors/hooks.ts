import type { Processor } from './processor.ts'

export type Hook = Exclude<keyof Processor, 'id' | 'name' | 'stateId' | 'maxDeltas' | 'timeoutMs'>

/** The hooks that are asked of input processors, in the order of a step. */
export const inputHooks: readonly Hook[] = ['processInput', 'processInputStep', 'computeStateSignal', 'processAPIError']

/** Those that are asked of output processors. */
export const outputHooks: readonly Hook[] = ['processOutputStream', 'processOutputStep', 'processToolResult', 'processOutputResult', 'processAPIError']

export const allHooks: readonly Hook[] = [...new Set([...inputHooks, ...outputHooks])]

/** What a hook is given. */
export type HookArgs<Name extends Hook> = Parameters<NonNullable<Processor[Name]>>[0]

export function having(processors: readonly Processor[], hook: Hook): readonly Processor[] {
  return processors.some((processor) => typeof processor[hook] === 'function') ? processors.filter((processor) => typeof processor[hook] === 'function') : nobody
}

const nobody: readonly Processor[] = []

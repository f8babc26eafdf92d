import type { Processor } from './processor.ts'

export type Hook = Exclude<keyof Processor, 'id' | 'name' | 'stateId' | 'maxDeltas' | 'timeoutMs'>

/** The hooks that are asked of input processors, in the order of a step. */
export const inputHooks: readonly Hook[] = ['processInput', 'processInputStep', 'computeStateSignal', 'processAPIError']

/** Those that are asked of output processors. */
export const outputHooks: readonly Hook[] = ['processOutputStream', 'processOutputStep', 'processToolResult', 'processOutputResult', 'processAPIError']

export const allHooks: readonly Hook[] = [...new Set([...inputHooks, ...outputHooks])]

export type HookOf<Name extends Hook> = NonNullable<Processor[Name]>

import type { Processor } from './processor.ts'

export type Hook = Exclude<keyof Processor, 'id' | 'name' | 'stateId' | 'maxDeltas' | 'timeoutMs'>

/** The hooks of input processors, in the order of a step. */
export const inputHooks: readonly Hook[] = ['processInput', 'processInputStep', 'computeStateSignal', 'processAPIError']

/** The hooks of output processors. */
export const outputHooks: readonly Hook[] = [
  'processOutputStream', 'processOutputStep', 'processToolResult', 'processOutputResult', 'processAPIError',
]

export const allHooks: readonly Hook[] = [...new Set([...inputHooks, ...outputHooks])]

export type HookOf<Name extends Hook> = NonNullable<Processor[Name]>

/** A processor in errors and logs: its id, and its name where it has one. */
export function processorLabel({ id, name }: Processor): string {
  return name === undefined || name === id ? `'${id}'` : `'${id}' (${name})`
}

import { describe } from '../../base/errors.ts'
import type { AgentExecutionOptions } from '../options.ts'
import type { Run } from './run.ts'

export type CallbackName = 'onChunk' | 'onStepFinish' | 'onFinish' | 'onError' | 'onAbort'
export type CallbackEvent<Name extends CallbackName> = Parameters<NonNullable<AgentExecutionOptions[Name]>>[0]

/** Tells a caller's callback. What it does wrong is logged and is not the run's failure. */
export function tellCallback<Name extends CallbackName>(run: Run, name: Name, event: CallbackEvent<Name>): void {
  const callback = run.options[name] as ((event: unknown) => void | Promise<void>) | undefined
  if (!callback) return
  const failed = (error: unknown) => run.logger.error(`${name} of agent '${run.agent.id}' failed`, { runId: run.id, error: describe(error) })
  try {
    Promise.resolve(callback(event)).catch(failed)
  } catch (error) {
    failed(error)
  }
}

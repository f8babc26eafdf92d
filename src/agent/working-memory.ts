import { workingMemoryOptionsIn } from '../memory/named-processors.ts'
import { workingMemoryBlock } from '../memory/working-memory/block.ts'
import { parseWorkingMemory, workingMemoryOwner, type WorkingMemorySetting } from '../memory/working-memory/setting.ts'
import { toolName, workingMemoryInstructions, workingMemoryTool, type RunWorkingMemory } from '../memory/working-memory/tool.ts'
import type { MessageRow } from '../message/row.ts'
import type { Processor } from '../processors/processor.ts'
import type { SystemMessage } from '../prompt/system.ts'
import type { ContextBlock, ContextSource } from '../run/loop/run-setup.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { ThreadStore } from '../store/contract/threads.ts'
import type { RunRequest } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { AgentConfig } from './config.ts'
import { resolve } from './resolve.ts'

type ResolvedOptions = AgentExecutionOptions & { requestContext: RequestContext }

/** Working memory as this call has it: the call's options come before a processor given by hand, and that before the memory's. */
export async function workingMemorySetting(
  config: AgentConfig, options: ResolvedOptions, processors: ReadonlyArray<readonly Processor[]>,
): Promise<WorkingMemorySetting | undefined> {
  const memory = config.memory === undefined ? undefined : await resolve(config.memory, { requestContext: options.requestContext })
  const own = options.memory?.options
  const base = workingMemoryOptionsIn(processors) ?? memory?.options.workingMemory
  if (!base && !own?.workingMemory) return undefined
  const readOnly = own?.readOnly ?? memory?.options.readOnly ?? false
  return parseWorkingMemory({ workingMemory: { ...base, ...own?.workingMemory }, readOnly })
}

/** What working memory adds to a run: words at the start, a tool, and blocks at the end of the prompt. */
export interface WorkingMemoryParts {
  system: SystemMessage[]
  tools: ToolsInput
  context: ContextSource[]
}

export async function workingMemoryParts(setting: WorkingMemorySetting | undefined, seat?: RunWorkingMemory): Promise<WorkingMemoryParts> {
  if (!setting) return { system: [], tools: {}, context: [] }
  return {
    system: [await workingMemoryInstructions(setting)],
    tools: setting.readOnly ? {} : { [toolName]: await workingMemoryTool(setting, seat) },
    context: seat ? [(rows) => blockFor(seat, rows)] : [],
  }
}

/** What a run that began with these rows would be told of its working memory. Nothing is stored. */
export async function workingMemoryAhead(
  setting: WorkingMemorySetting | undefined, store: ThreadStore, scope: { threadId: string; resourceId: string }, rows: readonly MessageRow[],
): Promise<ContextBlock | undefined> {
  // A thread that is still to be made has none of its own.
  if (!setting || (setting.scope === 'thread' && !(await store.getThread(scope)))) return undefined
  const of = workingMemoryOwner(setting, scope)
  return workingMemoryBlock(rows, await store.getWorkingMemory(of), of.scope)
}

async function blockFor({ store, of, by }: RunWorkingMemory, rows: Parameters<ContextSource>[0]) {
  const present = await store.getWorkingMemory(of, { threadId: by.fence.threadId, runId: by.runId })
  return workingMemoryBlock(rows, present, of.scope)
}

/** A run on a thread has a seat; one without a thread has no working memory. */
export function seatOf(setting: WorkingMemorySetting | undefined, request: RunRequest, runtime: ThreadRuntime, staged: boolean): RunWorkingMemory | undefined {
  const { fence, runId } = request
  if (!setting || !fence) return undefined
  return { store: runtime.store, of: workingMemoryOwner(setting, request), by: { fence, runId, staged } }
}

import { workingMemoryOptionsIn } from '../../memory/processors.ts'
import {
  toolName, workingMemoryBlock, workingMemoryInstructions, workingMemoryTool, type CheckTexts, type RunWorkingMemory,
} from '../../memory/working-memory/prompt.ts'
import { workingMemoryOwner, parseWorkingMemory, type WorkingMemorySetting } from '../../memory/working-memory/setting.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Processor } from '../../processors/processor.ts'
import type { SystemMessage } from '../../prompt/system.ts'
import type { ContextBlock, ContextSource } from '../../run/loop/run-contract.ts'
import type { ResolvedOptions } from '../options.ts'
import type { ToolsInput } from '../../run/tools/tool-set.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import type { RunRequest } from '../../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../../thread/runtime/runtime.ts'
import { resolve, type AgentConfig } from '../config.ts'

/** The working memory settings of a call: its options override those of a processor, which override those of the memory. */
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

/** What working memory adds to a run: instructions, a tool, and blocks at the end of the prompt. */
export interface WorkingMemoryParts {
  system: SystemMessage[]
  tools: ToolsInput
  context: ContextSource[]
}

/** `check`: the input processors of the run, which see what the model writes. */
export async function workingMemoryParts(
  setting: WorkingMemorySetting | undefined, seat?: RunWorkingMemory, check?: CheckTexts,
): Promise<WorkingMemoryParts> {
  if (!setting) return { system: [], tools: {}, context: [] }
  return {
    system: [await workingMemoryInstructions(setting)],
    tools: setting.readOnly ? {} : { [toolName]: await workingMemoryTool(setting, seat, check) },
    context: seat ? [(rows) => blockFor(seat, rows)] : [],
  }
}

/** The working memory block of a run with these rows. Stores nothing. */
export async function previewWorkingMemory(
  setting: WorkingMemorySetting | undefined,
  store: ThreadStore,
  scope: { threadId: string; resourceId: string },
  rows: readonly MessageRow[],
): Promise<ContextBlock | undefined> {
  // A thread that does not exist yet has no working memory of its own.
  if (!setting || (setting.scope === 'thread' && !(await store.getThread(scope)))) return undefined
  const of = workingMemoryOwner(setting, scope)
  return workingMemoryBlock(rows, await store.getWorkingMemory(of), of.scope)
}

async function blockFor({ store, of, by }: RunWorkingMemory, rows: Parameters<ContextSource>[0]) {
  const present = await store.getWorkingMemory(of, { threadId: by.fence.threadId, runId: by.runId })
  return workingMemoryBlock(rows, present, of.scope)
}

/** The access of a run to working memory; undefined for a run without a thread. */
export function seatOf(
  setting: WorkingMemorySetting | undefined,
  request: RunRequest,
  runtime: ThreadRuntime,
  staged: boolean,
): RunWorkingMemory | undefined {
  const { fence, runId } = request
  if (!setting || !fence) return undefined
  return { store: runtime.store, of: workingMemoryOwner(setting, request), by: { fence, runId, staged } }
}

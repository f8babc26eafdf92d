import type { JSONObject } from '../base/json.ts'
import { splitMetadata } from '../memory/working-memory/access.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { Send } from '../store/contract/threads.ts'
import type { AgentConfig } from './config.ts'
import { resolveOptions, resolveProcessors } from './prepare.ts'
import { workingMemorySetting } from './working-memory.ts'

/** A thread that a call may create, as the store takes it. Most say nothing of working memory, and cost nothing here. */
export async function describeThread(
  config: AgentConfig, thread: { title?: string; metadata?: JSONObject }, given: AgentExecutionOptions, agent: string,
): Promise<NonNullable<Send['thread']>> {
  const { metadata, ...rest } = thread
  if (metadata?.workingMemory === undefined) return thread
  const options = await resolveOptions(config, given)
  const { input, output } = await resolveProcessors(config, options, agent)
  return { ...rest, ...(await splitMetadata(await workingMemorySetting(config, options, [input, output]), metadata)) }
}

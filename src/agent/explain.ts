import type { WorkingMemorySetting } from '../memory/working-memory/setting.ts'
import type { AgentInput } from '../message/read/input.ts'
import type { MessageRow } from '../message/row.ts'
import type { Processor } from '../processors/processor.ts'
import { explainPrompt, type ExplainedPrompt } from '../prompt/explain.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import { isUserAuthored } from '../signals/row.ts'
import { withMemory } from '../thread/send/stored-options.ts'
import type { Askable } from './askable.ts'
import { checkMemory } from './check-options.ts'
import type { AgentConfig } from './config.ts'
import { inputRows } from './input.ts'
import { resolveOptions, resolveProcessors, resolvePrompt, type ResolvedOptions } from './prepare.ts'
import { recallAhead } from './semantic-recall.ts'
import { workingMemoryAhead, workingMemoryParts, workingMemorySetting } from './working-memory.ts'

/**
 * What the next call would be made of, with what it would be told of its working memory and what would be recalled for it, and how much of it the provider has seen in the last one. Processors
 * are not asked, and nothing is stored.
 */
export async function explainAgentPrompt(agent: Askable, config: AgentConfig, messages: AgentInput, given: AgentExecutionOptions): Promise<ExplainedPrompt> {
  const options = await resolveOptions(config, given)
  const { input: before, output: after } = await resolveProcessors(config, options, agent.id)
  const setting = options.memory && (await workingMemorySetting(config, options, [before, after]))
  const working = await workingMemoryParts(setting)
  const { system, offered: tools } = await resolvePrompt(config, options, agent.id, agent.site(), working)
  const tags = agent.signalTags
  const input = inputRows(agent, messages)
  const history = await historyOf(agent, options, input.filter((row) => isUserAuthored(row)).length)
  // What the last call was sent: everything before what it answered.
  const answered = history.findLastIndex((row) => row.role === 'assistant')
  const previous = answered < 0 ? [] : explainPrompt({ system, tools, tags, rows: history.slice(0, answered) }).fingerprints
  const context = await contextRows(agent, config, options, { setting, processors: [before, after], history, input })
  return explainPrompt({ system, tools, tags, rows: [...history, ...input, ...context], previous })
}

interface Coming {
  setting: WorkingMemorySetting | undefined
  processors: ReadonlyArray<readonly Processor[]>
  history: readonly MessageRow[]
  input: readonly MessageRow[]
}

/** In the order in which a run is told. */
async function contextRows(agent: Askable, config: AgentConfig, options: ResolvedOptions, { setting, processors, history, input }: Coming): Promise<MessageRow[]> {
  if (!options.memory) return []
  const runtime = (await agent.resolveStorage(options.requestContext)).threads()
  const scope = checkMemory(options.memory)
  await runtime.open()
  const working = await workingMemoryAhead(setting, runtime.store, scope, [...history, ...input])
  const recalled = await recallAhead(config, options, processors, runtime, { ...scope, history, input })
  return [working, recalled].flatMap((block) => {
    if (!block) return []
    const id = runtime.newId()
    return { id, messageId: id, role: 'context', createdAt: new Date(runtime.clock.now()), content: { format: 2, parts: [{ type: 'text', text: block.text }], metadata: block.metadata } }
  })
}

/** What a call on a thread would be shown of it. */
export async function historyOf(agent: Askable, options: AgentExecutionOptions, coming: number): Promise<MessageRow[]> {
  if (!options.memory) return []
  const scope = checkMemory(options.memory)
  const runtime = (await agent.resolveStorage(options.requestContext)).threads()
  await runtime.open()
  if (!(await runtime.store.getThread(scope))) return []
  return runtime.store.readWindow(scope, agent.window(await withMemory(agent, options)), coming)
}

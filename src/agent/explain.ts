import { toRows, type AgentInput } from '../message/input.ts'
import { explainPrompt, type ExplainedPrompt } from '../prompt/explain.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { AgentConfig } from './config.ts'
import { environmentOf } from './environment.ts'
import { resolveInstructions, resolveOptions, resolveToolSet } from './prepare.ts'

export async function explainAgentPrompt(config: AgentConfig, agent: string, messages: AgentInput, given: AgentExecutionOptions): Promise<ExplainedPrompt> {
  const environment = environmentOf(config)
  const options = await resolveOptions(config, given)
  const { definitions } = await resolveToolSet(config, options, agent)
  return explainPrompt({
    system: await resolveInstructions(config, options),
    rows: toRows(messages, { newId: environment.newId, now: () => new Date(environment.clock.now()) }),
    tools: [...definitions],
  })
}

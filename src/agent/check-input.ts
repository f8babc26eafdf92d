import { checkName, checkNames, refused } from '../base/arguments.ts'
import { checkTexts } from '../run/loop/check-texts.ts'
import { RequestContext } from '../run/request-context.ts'
import type { Askable } from './askable.ts'
import type { AgentConfig } from './config.ts'
import { resolveOptions, resolveProcessors } from './prepare.ts'

/** Whose texts are checked, for processors that read it. */
export interface CheckInputOptions {
  threadId?: string
  resourceId?: string
  requestContext?: RequestContext
}

/** The texts as the agent's input processors leave them. Rejects with `tripwire` where a processor rejects them. */
export async function checkInput(
  agent: Askable, config: AgentConfig, texts: readonly string[], options: CheckInputOptions,
): Promise<readonly string[]> {
  checkNames('checkInput()', options, ['threadId', 'resourceId', 'requestContext'])
  const { threadId, resourceId, requestContext } = options
  if (threadId !== undefined) checkName('threadId', threadId)
  if (resourceId !== undefined) checkName('resourceId', resourceId)
  if (requestContext !== undefined && !(requestContext instanceof RequestContext)) throw refused('requestContext', 'a RequestContext')
  if (!Array.isArray(texts) || !texts.every((text) => typeof text === 'string')) throw refused('texts', 'a list of texts')
  if (config.inputProcessors === undefined || texts.length === 0) return texts
  const { clock, logger, newId } = agent.threads()
  const resolved = await resolveOptions(config, requestContext === undefined ? {} : { requestContext })
  const { input } = await resolveProcessors(config, resolved, agent.id)
  return checkTexts(input, texts, { agent, clock, logger, newId, threadId, resourceId, requestContext: resolved.requestContext })
}

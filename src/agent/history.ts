import { HeedError } from '../base/errors.ts'
import { historyIn } from '../memory/named-processors.ts'
import { historyOption } from '../memory/window.ts'
import type { Processor } from '../processors/processor.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../run/options.ts'
import { RequestContext } from '../run/request-context.ts'
import type { AgentConfig } from './config.ts'
import { listFound } from './found.ts'
import { resolve } from './resolve.ts'

const keys = ['inputProcessors', 'outputProcessors'] as const

/** The processors that are the same for every request. */
export function fixedProcessors(config: AgentConfig): Array<readonly Processor[] | undefined> {
  return keys.map((key) => (typeof config[key] === 'function' ? undefined : config[key]))
}

/**
 * How much history a call wants, where its options, a memory or processors that are found for each request say so. Found when it is
 * sent: the transaction that begins a run can't wait for it.
 */
export function historyForCall(agent: string, config: AgentConfig, options: AgentExecutionOptions): Promise<MemoryOptions> | undefined {
  const { memory } = config
  const depends = typeof memory === 'function' || keys.some((key) => options[key] !== undefined || typeof config[key] === 'function')
  return depends ? findHistory(agent, config, options) : undefined
}

async function findHistory(agent: string, config: AgentConfig, options: AgentExecutionOptions): Promise<MemoryOptions> {
  const context = { requestContext: options.requestContext ?? new RequestContext() }
  const memory = config.memory === undefined ? undefined : await resolve(config.memory, context)
  const lists = await Promise.all(keys.map(async (key) => options[key] ?? (config[key] === undefined ? [] : listFound(await resolve<Processor[]>(config[key], context), key, agent))))
  const fixed: unknown[] = fixedProcessors(config).flatMap((list) => list ?? [])
  for (const processor of lists.flat()) {
    if (processor.id === 'message-history' && 'storage' in processor && processor.storage && !fixed.includes(processor)) throw noStorage(agent)
  }
  return historyOption(memory?.options, historyIn(lists))
}

function noStorage(agent: string): HeedError {
  const why = `The MessageHistory of agent '${agent}' is found for each request and can't bring its own storage.`
  return new HeedError('unsupported_option', `${why} Give the storage to the memory, which may be found for each request, or to the Heed.`, { details: { option: 'storage' } })
}

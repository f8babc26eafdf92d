import { HeedError } from '../../base/errors.ts'
import { historyIn } from '../../memory/named-processors.ts'
import { historyOption } from '../../memory/window.ts'
import type { Processor } from '../../processors/processor.ts'
import type { AgentExecutionOptions, MemoryOptions } from '../../run/options.ts'
import { RequestContext } from '../../run/request-context.ts'
import { expectList, resolve, type AgentConfig } from '../config.ts'

const keys = ['inputProcessors', 'outputProcessors'] as const

/** The processors that are the same for every request. */
export function staticProcessors(config: AgentConfig): Array<readonly Processor[] | undefined> {
  return keys.map((key) => (typeof config[key] === 'function' ? undefined : config[key]))
}

/**
 * The history options of a call, where they depend on its options or on functions of the agent. Resolved at the send: the transaction that
 * begins a run cannot wait for them.
 */
export function historyOptionsOfCall(
  agent: string,
  config: AgentConfig,
  options: AgentExecutionOptions,
): Promise<MemoryOptions> | undefined {
  const { memory } = config
  const depends = typeof memory === 'function' || keys.some((key) => options[key] !== undefined || typeof config[key] === 'function')
  return depends ? resolveHistory(agent, config, options) : undefined
}

async function resolveHistory(agent: string, config: AgentConfig, options: AgentExecutionOptions): Promise<MemoryOptions> {
  const context = { requestContext: options.requestContext ?? new RequestContext() }
  const memory = config.memory === undefined ? undefined : await resolve(config.memory, context)
  const lists = await Promise.all(
    keys.map(
      async (key) =>
        options[key] ?? (config[key] === undefined ? [] : expectList(await resolve<Processor[]>(config[key], context), key, agent)),
    ),
  )
  const fixed: unknown[] = staticProcessors(config).flatMap((list) => list ?? [])
  for (const processor of lists.flat()) {
    if (processor.id === 'message-history' && 'storage' in processor && processor.storage && !fixed.includes(processor))
      throw noStorage(agent)
  }
  return historyOption(memory?.options, historyIn(lists))
}

function noStorage(agent: string): HeedError {
  const why = `The MessageHistory of agent '${agent}' is resolved for each request and cannot have its own storage.`
  return new HeedError(
    'unsupported_option',
    `${why} Pass the storage to the memory, which may be a function of the request, or to the Heed.`,
    { details: { option: 'storage' } },
  )
}

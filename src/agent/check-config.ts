import { HeedError } from '../errors.ts'
import { compileSchema } from '../schema/compile.ts'
import { checkModel } from '../run/model.ts'
import type { AgentConfig } from './config.ts'

const known = new Set([
  'id', 'name', 'description', 'metadata', 'instructions', 'model', 'tools', 'agents', 'defaultOptions',
  'defaultGenerateOptionsLegacy', 'defaultStreamOptionsLegacy', 'transform', 'requestContextSchema', 'inputProcessors',
  'outputProcessors', 'maxProcessorRetries', 'memory', 'notifications', 'signalTags', 'heed', 'editor',
])
/** Parameters that the specification has and Heed doesn't yet. */
const later = new Set(['workflows', 'scorers', 'voice', 'editor'])

/** Refuses what can be known to be wrong when an agent is made. What is only missing is named when it is first needed. */
export function checkConfig(config: AgentConfig): void {
  if (typeof config !== 'object' || config === null) throw new HeedError('invalid_agent', "An agent needs its parameters: new Agent({ id: 'support', … }).")
  const { id, name } = config
  for (const [field, value] of Object.entries({ id, name })) {
    if (value !== undefined && (typeof value !== 'string' || value.trim() === '')) {
      throw new HeedError('invalid_agent', `An agent's ${field} must be a text that is not empty.`, { details: { field } })
    }
  }
  const who = id ?? name ?? 'without a name'
  for (const [key, value] of Object.entries(config)) {
    if (value === undefined || (key === 'editor' && value === false)) continue
    if (later.has(key)) {
      throw new HeedError('unsupported_option', `Agent '${who}' has '${key}', which Heed can't do yet. Leave it out.`, { details: { option: key } })
    }
    if (!known.has(key)) {
      throw new HeedError('unsupported_option', `Agent '${who}' has '${key}', which is not a parameter of an agent. Known: ${[...known].join(', ')}.`, { details: { option: key } })
    }
  }
  if (config.model !== undefined) checkModel(config.model, who)
  if (config.requestContextSchema !== undefined) compileSchema(config.requestContextSchema, `requestContextSchema of agent '${who}'`)
  for (const key of ['inputProcessors', 'outputProcessors'] as const) if (Array.isArray(config[key])) checkProcessors(config[key], key, who)
}

/** Processors are objects with an id. A workflow in their place is for later, and says so. */
export function checkProcessors(list: readonly unknown[], key: string, agent: string): void {
  if (!Array.isArray(list)) throw new HeedError('invalid_agent', `${key} of agent '${agent}' must be a list of processors.`)
  for (const entry of list) {
    const value = entry as { id?: unknown; createRun?: unknown } | null
    if (typeof value?.createRun === 'function') {
      throw new HeedError('unsupported_option', `${key} of agent '${agent}' holds a workflow, which Heed can't run yet. Use a processor object.`)
    }
    if (typeof value !== 'object' || value === null || typeof value.id !== 'string') {
      throw new HeedError('invalid_agent', `${key} of agent '${agent}' must hold processors: objects with an id and at least one hook.`)
    }
  }
}

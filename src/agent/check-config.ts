import { HeedError } from '../base/errors.ts'
import { compileSchema } from '../schema/compile.ts'
import { checkModel } from '../run/model/model.ts'
import { isXMLName } from '../signals/xml.ts'
import { checkPolicy } from '../inbox/policy.ts'
import { Memory } from '../memory/memory.ts'
import { checkOptions, wantedTransform } from './check-options.ts'
import { checkProcessors } from './check-processors.ts'
import { fromLegacyOptions, type AgentConfig } from './config.ts'
import { Sites } from '../heed/sites.ts'

const known = new Set([
  'id', 'name', 'description', 'metadata', 'instructions', 'model', 'tools', 'agents', 'defaultOptions',
  'defaultGenerateOptionsLegacy', 'defaultStreamOptionsLegacy', 'transform', 'requestContextSchema', 'inputProcessors',
  'outputProcessors', 'maxProcessorRetries', 'memory', 'notifications', 'signalTags', 'heed', 'editor',
])
/** Parameters that the specification has and Heed doesn't yet. */
const later = new Set(['workflows', 'scorers', 'voice', 'editor'])

/** Refuses what can be known to be wrong when an agent is made. What is only missing is named when it is first needed. */
export function checkConfig(config: AgentConfig): void {
  if (typeof config !== 'object' || config === null || Array.isArray(config)) throw new HeedError('invalid_agent', "An agent needs its parameters: new Agent({ id: 'support', … }).")
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
  const [input, output] = [config.inputProcessors ?? [], config.outputProcessors ?? []].map((list) => (typeof list === 'function' ? undefined : list))
  checkProcessors({ input, output }, who)
  checkValues(config, who)
  checkNotifications(config.notifications, who)
  for (const key of ['defaultOptions', 'defaultGenerateOptionsLegacy', 'defaultStreamOptionsLegacy'] as const) {
    const options = config[key]
    if (typeof options === 'object') checkOptions(key === 'defaultOptions' ? options : fromLegacyOptions(options), `${key} of agent '${who}'`)
  }
}

function checkValues(config: AgentConfig, agent: string): void {
  const wanted: Partial<Record<keyof AgentConfig, string>> = {
    description: typeof config.description === 'string' ? undefined : 'a text',
    metadata: isObjectOrFunction(config.metadata) ? undefined : 'an object, or a function that finds one',
    agents: isObjectOrFunction(config.agents) ? undefined : 'an object of agents by their names, or a function that finds one',
    defaultOptions: isObjectOrFunction(config.defaultOptions) ? undefined : 'an object, or a function that finds one',
    defaultGenerateOptionsLegacy: isObjectOrFunction(config.defaultGenerateOptionsLegacy) ? undefined : 'an object, or a function that finds one',
    defaultStreamOptionsLegacy: isObjectOrFunction(config.defaultStreamOptionsLegacy) ? undefined : 'an object, or a function that finds one',
    transform: wantedTransform(config.transform),
    maxProcessorRetries: Number.isInteger(config.maxProcessorRetries) && Number(config.maxProcessorRetries) >= 0 ? undefined : 'a whole number of at least 0',
    memory: config.memory instanceof Memory || typeof config.memory === 'function' ? undefined : 'a Memory (new Memory()), or a function that finds one',
    signalTags: Array.isArray(config.signalTags) && config.signalTags.every(isXMLName) ? undefined : "a list of tags' names, such as 'build-status'",
    heed: config.heed?.sites instanceof Sites ? undefined : 'a Heed: new Heed({ … })',
  }
  for (const [field, what] of Object.entries(wanted)) {
    if (what === undefined || config[field as keyof AgentConfig] === undefined) continue
    throw new HeedError('invalid_agent', `${field} of agent '${agent}' must be ${what}.`, { details: { field } })
  }
}

function checkNotifications(notifications: AgentConfig['notifications'], agent: string): void {
  if (notifications === undefined) return
  if (typeof notifications !== 'object' || notifications === null) throw new HeedError('invalid_agent', `notifications of agent '${agent}' must be an object.`, { details: { field: 'notifications' } })
  for (const key of Object.keys(notifications)) {
    if (key !== 'deliveryPolicy') throw new HeedError('unsupported_option', `notifications of agent '${agent}' has '${key}'. Known: deliveryPolicy.`, { details: { option: `notifications.${key}` } })
  }
  if (notifications.deliveryPolicy !== undefined) checkPolicy(notifications.deliveryPolicy)
}

function isObjectOrFunction(value: unknown): boolean {
  return typeof value === 'function' || (typeof value === 'object' && value !== null && !Array.isArray(value))
}

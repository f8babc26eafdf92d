import type { Heed } from '../heed/heed.ts'
import type { NotificationDeliveryPolicyConfig } from '../inbox/policy.ts'
import type { Memory } from '../memory/memory.ts'
import type { Processor } from '../processors/processor.ts'
import type { SystemMessageInput } from '../prompt/system.ts'
import type { ModelConfig, ModelSettings } from '../run/model/model.ts'
import type { AgentExecutionOptions, MemoryTarget } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { ToolPayloadTransformPolicy } from '../run/tools/transform.ts'
import type { Schema } from '../schema/schema.ts'
import type { Agent } from './agent.ts'

/** A value, or a function that finds it for one request. */
export type Dynamic<T> = T | ((context: { requestContext: RequestContext }) => T | Promise<T>)

/** Agents that another one may call, by the name it calls them by. What is undefined is left out. */
export type AgentsInput = Record<string, Agent | undefined>

export interface AgentConfig<Id extends string = string, Tools extends ToolsInput = ToolsInput> {
  /** Defaults to `name`, then to the key under which a `Heed` knows the agent. */
  id?: Id
  name?: string
  description?: string
  /** For clients, to classify and filter agents. */
  metadata?: Dynamic<Record<string, unknown>>
  instructions?: Dynamic<SystemMessageInput>
  model?: Dynamic<ModelConfig>
  tools?: Dynamic<Tools>
  /** Offered to the model as tools; what they say is nested in this agent's stream. */
  agents?: Dynamic<AgentsInput>
  /** Options for every `generate()`, `stream()` and woken run; those of a call come before them. */
  defaultOptions?: Dynamic<AgentExecutionOptions>
  /** An older name of `defaultOptions`. */
  defaultGenerateOptionsLegacy?: Dynamic<LegacyOptions>
  /** An older name of `defaultOptions`. */
  defaultStreamOptionsLegacy?: Dynamic<LegacyOptions>
  /** What displays and transcripts see of the payloads of all tools. */
  transform?: ToolPayloadTransformPolicy
  /** Checked at the start of every run. */
  requestContextSchema?: Schema
  inputProcessors?: Dynamic<Processor[]>
  outputProcessors?: Dynamic<Processor[]>
  /** How often processors may have the model asked again. Defaults to 3. */
  maxProcessorRetries?: number
  memory?: Dynamic<Memory>
  /** What is done with notifications: see `sendNotificationSignal`. */
  notifications?: { deliveryPolicy?: NotificationDeliveryPolicyConfig }
  /** Tags that this agent's own signals use: text that imitates one is escaped. */
  signalTags?: string[]
  heed?: Heed
  /** Only `false`: nothing may be overridden from outside. */
  editor?: false
}

/** Options as older programs write them. */
export interface LegacyOptions extends AgentExecutionOptions, Omit<ModelSettings, 'maxOutputTokens' | 'reasoning'> {
  maxTokens?: number
  threadId?: string
  resourceId?: string
}

/** The legacy names in today's form. */
export function fromLegacyOptions(legacy: LegacyOptions): AgentExecutionOptions {
  if (typeof legacy !== 'object' || legacy === null) return legacy
  const { maxTokens, temperature, topP, topK, seed, presencePenalty, frequencyPenalty, stopSequences, headers, maxRetries, threadId, resourceId, ...options } = legacy
  const given = present({ maxOutputTokens: maxTokens, temperature, topP, topK, seed, presencePenalty, frequencyPenalty, stopSequences, headers, maxRetries })
  const place = present({ thread: threadId, resource: resourceId })
  return {
    ...options,
    ...(Object.keys(given).length === 0 ? {} : { modelSettings: { ...given, ...options.modelSettings } }),
    // A place that isn't said in full is refused where it is needed.
    ...(Object.keys(place).length === 0 ? {} : { memory: { ...place, ...options.memory } as MemoryTarget }),
  }
}

function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

import type { AgentExecutionOptions } from '../run/options.ts'

/** A call's options before the agent's. Groups of settings are merged by key, everything else is replaced. */
export function mergeOptions(defaults: AgentExecutionOptions, options: AgentExecutionOptions): AgentExecutionOptions {
  const merged = { ...defaults, ...given(options) }
  if (defaults.modelSettings && options.modelSettings) merged.modelSettings = { ...defaults.modelSettings, ...options.modelSettings }
  if (defaults.providerOptions && options.providerOptions) {
    merged.providerOptions = { ...defaults.providerOptions }
    for (const [provider, value] of Object.entries(options.providerOptions)) {
      merged.providerOptions[provider] = { ...merged.providerOptions[provider], ...value }
    }
  }
  return merged
}

function given(options: AgentExecutionOptions): AgentExecutionOptions {
  for (const key in options) {
    if (options[key as keyof AgentExecutionOptions] === undefined) return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  }
  return options
}

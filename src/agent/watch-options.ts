import { checkWhole, nearestName } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { checkModel, type ModelConfig } from '../run/model/model.ts'
import type { WatchLimitOptions } from '../watch/watches.ts'
import type { AgentConfig, Dynamic } from './config.ts'

/** The watches of an agent. With them the model is offered `await_signal`. */
export interface AgentWatchOptions extends WatchLimitOptions {
  /** Judges the messages that fit a watch. Defaults to the agent's model. */
  model?: Dynamic<ModelConfig>
}

const limits = ['maxExpiryMs', 'maxLookBackMs', 'maxOpen'] as const
const known: readonly string[] = ['model', ...limits]

/** Rejects invalid `watches` of an agent. */
export function checkWatchOptions(watches: AgentConfig['watches'], agent: string): void {
  if (watches === undefined || watches === true) return
  if (typeof watches !== 'object' || watches === null)
    throw new HeedError('invalid_agent', `watches of agent '${agent}' must be true or an object.`, { details: { field: 'watches' } })
  for (const name of Object.keys(watches)) {
    if (known.includes(name)) continue
    const meant = nearestName(name, known)
    const hint = meant ? `Did you mean ${meant}?` : `Known: ${known.join(', ')}.`
    throw new HeedError('unsupported_option', `watches of agent '${agent}' has '${name}'. ${hint}`, {
      details: { option: `watches.${name}` },
    })
  }
  if (watches.model !== undefined && typeof watches.model !== 'function') checkModel(watches.model, `watches of agent '${agent}'`)
  for (const limit of limits) if (watches[limit] !== undefined) checkWhole(`watches.${limit}`, watches[limit], 1)
}

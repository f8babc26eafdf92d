import { refused } from '../base/arguments.ts'
import type { MemoryOptions } from '../run/options.ts'
import { checkMemoryOptions } from './options.ts'

/** Options that set up a run. Those that switch something off are accepted: nothing of it happens here. */
const ofRuns = ['window', 'workingMemory', 'generateTitle'] as const

/** Rejects options of a list of messages that cannot take effect. */
export function checkListConfig(config: MemoryOptions | undefined, perPage: number | false | undefined): void {
  if (config === undefined) return
  checkMemoryOptions(config)
  for (const name of ofRuns) if (isOn(config[name])) throw refused(`threadConfig.${name}`, 'left out: a list of messages has no run')
  if (isOn(config.semanticRecall)) throw refused('threadConfig.semanticRecall', 'given with vectorSearchString')
  if (config.lastMessages === undefined) return
  if (config.lastMessages === false) throw refused('threadConfig.lastMessages', 'a whole number above 0')
  if (perPage !== undefined) throw refused('threadConfig.lastMessages', 'left out with perPage: both set the number of messages')
}

/** Rejects options of a search that cannot take effect. */
export function checkSearchConfig(config: MemoryOptions | undefined, perPage: number | false | undefined): void {
  if (config === undefined) return
  checkMemoryOptions(config)
  for (const name of ofRuns) if (isOn(config[name])) throw refused(`threadConfig.${name}`, 'left out: a search has no run')
  if (isOn(config.lastMessages)) throw refused('threadConfig.lastMessages', 'left out with vectorSearchString, which has topK')
  const { semanticRecall } = config
  if (typeof semanticRecall !== 'object') return
  for (const name of ['maxTokens', 'maxWindowTokens'] as const) {
    if (semanticRecall[name] !== undefined) throw refused(`threadConfig.semanticRecall.${name}`, 'left out: a search makes no block')
  }
  if (semanticRecall.topK !== undefined && perPage !== undefined) {
    throw refused('threadConfig.semanticRecall.topK', 'left out with perPage: both set the number of messages')
  }
}

/** Whether an option asks for something. */
function isOn(option: unknown): boolean {
  if (typeof option === 'object' && option !== null && 'enabled' in option) return option.enabled !== false
  return option !== undefined && option !== false
}

import { semanticRecallIn } from '../memory/named-processors.ts'
import { mergeRecallOptions } from '../memory/semantic/search.ts'
import { parseRecallOptions, type RecallSetting } from '../memory/semantic/setting.ts'
import { recallSource } from '../memory/semantic/source.ts'
import type { MessageRow } from '../message/row.ts'
import type { Processor } from '../processors/processor.ts'
import type { TextEmbedder } from '../recall/embedder.ts'
import type { ContextBlock, ContextSource } from '../run/loop/run-setup.ts'
import { recallIndexOf } from '../store/contract/storage.ts'
import type { RunEnvironment, RunRequest } from '../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import type { AgentConfig } from './config.ts'
import type { ResolvedOptions } from './prepare.ts'
import { resolve } from './resolve.ts'

interface Recalling {
  setting: RecallSetting
  embedder: TextEmbedder | undefined
}

/** Recall as this call has it: on for agents that have a memory, or are given a SemanticRecall or options for it. */
async function recalling(config: AgentConfig, options: ResolvedOptions, processors: ReadonlyArray<readonly Processor[]>): Promise<Recalling | undefined> {
  const memory = config.memory === undefined ? undefined : await resolve(config.memory, { requestContext: options.requestContext })
  const named = semanticRecallIn(processors)
  const own = options.memory?.options?.semanticRecall
  if (!memory && !named && own === undefined) return undefined
  const setting = parseRecallOptions({ semanticRecall: mergeRecallOptions(named ? named.options : memory?.options.semanticRecall, own) })
  return setting && { setting, embedder: named?.embedder ?? memory?.embedder }
}

/** What recall adds to a run: a block at the end of its first prompt. */
export async function recallSources(
  config: AgentConfig, options: ResolvedOptions, processors: ReadonlyArray<readonly Processor[]>, request: RunRequest, { runtime, environment, guarded }: { runtime: ThreadRuntime; environment: RunEnvironment; guarded: boolean },
): Promise<ContextSource[]> {
  const { threadId, resourceId, rows, inputCount, fence, trace } = request
  if (!fence || threadId === undefined || resourceId === undefined || inputCount === 0) return []
  const found = await recalling(config, options, processors)
  const index = found && (await recallIndexOf(runtime.store))
  if (!found || !index) return []
  const { setting, embedder } = found
  if (embedder) index.embedWith(embedder, environment.logger)
  return [recallSource(setting, { store: runtime.store, index, embedder, threadId, resourceId, guarded, input: rows.slice(-inputCount), logger: environment.logger, trace })]
}

/** What recall would add to a run that began with this input. Nothing is stored. */
export async function recallAhead(
  config: AgentConfig, options: ResolvedOptions, processors: ReadonlyArray<readonly Processor[]>, runtime: ThreadRuntime, { threadId, resourceId, history, input }: { threadId: string; resourceId: string; history: readonly MessageRow[]; input: readonly MessageRow[] },
): Promise<ContextBlock | undefined> {
  const found = await recalling(config, options, processors)
  const index = found && (await recallIndexOf(runtime.store))
  if (!found || !index) return undefined
  const guarded = processors[0]?.some(({ processInput }) => processInput !== undefined) ?? false
  const source = recallSource(found.setting, { store: runtime.store, index, embedder: found.embedder, threadId, resourceId, guarded, input, logger: runtime.logger, trace: undefined })
  return source([...history, ...input])
}

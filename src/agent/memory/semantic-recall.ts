import { semanticRecallIn } from '../../memory/processors.ts'
import { checkVectorPlace, mergeRecallOptions, noIndex } from '../../memory/semantic/search.ts'
import { parseRecallOptions, type RecallSetting } from '../../memory/semantic/setting.ts'
import { recallSource } from '../../memory/semantic/source.ts'
import type { MessageRow } from '../../message/row.ts'
import type { Processor } from '../../processors/processor.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import type { ContextBlock, ContextSource } from '../../run/loop/run-contract.ts'
import { recallIndexOf } from '../../store/contract/storage.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import type { RunEnvironment, RunRequest } from '../../thread/runtime/runnable.ts'
import type { ThreadRuntime } from '../../thread/runtime/runtime.ts'
import { resolve, type AgentConfig } from '../config.ts'
import type { ResolvedOptions } from '../options.ts'

interface ResolvedRecall {
  setting: RecallSetting
  embedder: TextEmbedder | undefined
  /** It was asked for, by an option, an embedder or a processor; otherwise it is on where the storage supports it. */
  isRequested: boolean
}

/** The recall settings of a call; undefined without a memory, a SemanticRecall processor and options for it. */
async function resolveRecall(
  config: AgentConfig,
  options: ResolvedOptions,
  processors: ReadonlyArray<readonly Processor[]>,
  store: ThreadStore,
): Promise<ResolvedRecall | undefined> {
  const memory = config.memory === undefined ? undefined : await resolve(config.memory, { requestContext: options.requestContext })
  const named = semanticRecallIn(processors)
  const own = options.memory?.options?.semanticRecall
  if (!memory && !named && own === undefined) return undefined
  if (named) checkVectorPlace(named.vector, store)
  else memory?.checkStore(store)
  const embedder = named?.embedder ?? memory?.embedder
  const placed = (named ? named.embedder : memory?.embedder)?.place !== undefined
  const merged = mergeRecallOptions(named ? named.options : memory?.options.semanticRecall, own)
  const setting = parseRecallOptions({ semanticRecall: merged }, { placed })
  const isRequested = named !== undefined || embedder !== undefined || (own ?? memory?.options.semanticRecall) !== undefined
  return setting && { setting, embedder, isRequested }
}

/** The recall block at the end of a run's first prompt. */
export async function recallSources(
  config: AgentConfig,
  options: ResolvedOptions,
  processors: ReadonlyArray<readonly Processor[]>,
  request: RunRequest,
  { runtime, environment, hasInputProcessors }: { runtime: ThreadRuntime; environment: RunEnvironment; hasInputProcessors: boolean },
): Promise<ContextSource[]> {
  const { threadId, resourceId, rows, inputCount, fence, trace } = request
  if (!fence || threadId === undefined || resourceId === undefined || inputCount === 0) return []
  const found = await resolveRecall(config, options, processors, runtime.store)
  const index = found && (await recallIndexOf(runtime.store))
  if (found?.isRequested && !index) throw noIndex()
  if (!found || !index) return []
  const { setting, embedder } = found
  index.reportTo?.(environment.logger)
  if (embedder) index.embedWith(embedder, environment.logger)
  return [
    recallSource(setting, {
      store: runtime.store,
      index,
      embedder,
      threadId,
      resourceId,
      hasInputProcessors,
      input: rows.slice(-inputCount),
      logger: environment.logger,
      trace,
    }),
  ]
}

/** The recall block of a run with this input. Stores nothing. */
export async function previewRecall(
  config: AgentConfig,
  options: ResolvedOptions,
  processors: ReadonlyArray<readonly Processor[]>,
  runtime: ThreadRuntime,
  {
    threadId,
    resourceId,
    history,
    input,
  }: { threadId: string; resourceId: string; history: readonly MessageRow[]; input: readonly MessageRow[] },
): Promise<ContextBlock | undefined> {
  const found = await resolveRecall(config, options, processors, runtime.store)
  const index = found && (await recallIndexOf(runtime.store))
  if (found?.isRequested && !index) throw noIndex()
  if (!found || !index) return undefined
  const hasInputProcessors = processors[0]?.some(({ processInput }) => processInput !== undefined) ?? false
  const source = recallSource(found.setting, {
    store: runtime.store,
    index,
    embedder: found.embedder,
    threadId,
    resourceId,
    hasInputProcessors,
    input,
    logger: runtime.logger,
    trace: undefined,
  })
  return source([...history, ...input])
}

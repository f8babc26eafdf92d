import { HeedError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import type { TextEmbedder } from '../../recall/embedder.ts'
import { compileFilter, type MetadataFilter } from '../../recall/filter/filter.ts'
import type { VectorIndexSettings } from '../../recall/vector-store.ts'
import { resolveEmbedder, type EmbedderInput } from '../../run/model/model-router.ts'
import type { MemoryOptions, SemanticRecallOptions, VectorIndexConfig } from '../../run/options.ts'

/** The options of recall, with defaults applied. */
export interface RecallSetting {
  topK: number
  before: number
  after: number
  scope: 'resource' | 'thread'
  threshold: number
  /** The limit of one block; without it, a share of what the window has left. */
  maxTokens?: number
  /** The limit of all recall blocks of a window together. */
  maxWindowTokens: number
  filter?: MetadataFilter
}

const known: ReadonlyArray<keyof SemanticRecallOptions> = [
  'enabled',
  'topK',
  'messageRange',
  'scope',
  'threshold',
  'filter',
  'maxTokens',
  'maxWindowTokens',
  'indexConfig',
]
const knownOfIndex: ReadonlyArray<keyof VectorIndexConfig> = ['type', 'metric', 'm', 'efConstruction', 'lists', 'hnsw', 'ivf']
export const maxHits = 100
/** The default of `maxWindowTokens`. A larger `maxTokens` raises it: a block of the size that was asked for must fit. */
const defaultWindowTokens = 1_500

/**
 * Validates the options of recall; undefined when it is off. Rejects what the index does not support; `placed`: the vectors are in a vector
 * store, which gets the settings of its index and rejects what it does not support.
 */
export function parseRecallOptions(
  { semanticRecall = true }: Pick<MemoryOptions, 'semanticRecall'>, { placed = false }: { placed?: boolean } = {},
): RecallSetting | undefined {
  if (semanticRecall === false) return undefined
  const options: SemanticRecallOptions = semanticRecall === true ? {} : semanticRecall
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalidOption('semanticRecall', 'must be true, false or an object')
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || known.some((one) => one === name)) continue
    throw new HeedError('unsupported_option', `semanticRecall has no '${name}'. Known: ${known.join(', ')}.`, {
      details: { option: `semanticRecall.${name}` },
    })
  }
  const {
    enabled = true,
    topK = 6,
    messageRange = 1,
    scope = 'resource',
    threshold = 0.15,
    filter,
    maxTokens,
    maxWindowTokens = Math.max(defaultWindowTokens, maxTokens ?? 0),
    indexConfig,
  } = options
  if (typeof enabled !== 'boolean') throw invalidOption('enabled', 'must be true or false')
  checkCount('topK', topK, 1, maxHits)
  const { before, after } = parseRange(messageRange)
  checkCount('messageRange', before, 0, maxHits)
  checkCount('messageRange', after, 0, maxHits)
  if (scope !== 'resource' && scope !== 'thread') throw invalidOption('scope', "must be 'resource' or 'thread'")
  if (typeof threshold !== 'number' || !(threshold >= 0 && threshold <= 1)) {
    throw invalidOption('threshold', 'must be a number between 0 and 1')
  }
  if (maxTokens !== undefined) checkCount('maxTokens', maxTokens, 1, Number.MAX_SAFE_INTEGER)
  checkCount('maxWindowTokens', maxWindowTokens, 1, Number.MAX_SAFE_INTEGER)
  if (filter !== undefined) compileFilter(filter, 'semanticRecall.filter')
  if (indexConfig !== undefined) checkIndexConfig(indexConfig, placed)
  if (!enabled) return undefined
  return {
    topK, before, after, scope, threshold, maxWindowTokens,
    ...(maxTokens !== undefined && { maxTokens }),
    ...(filter && { filter }),
  }
}

function parseRange(range: NonNullable<SemanticRecallOptions['messageRange']>): { before: number; after: number } {
  if (typeof range !== 'object' || range === null) return { before: range, after: range }
  const [unknown] = Object.keys(range).filter((name) => name !== 'before' && name !== 'after' && Reflect.get(range, name) !== undefined)
  if (unknown === undefined) return range
  throw new HeedError('unsupported_option', `messageRange has no '${unknown}'. Known: before, after.`, {
    details: { option: `semanticRecall.messageRange.${unknown}` },
  })
}

/** The built-in index is flat and compares by cosine: graphs and lists (HNSW, IVF) are options of vector stores. */
function checkIndexConfig(config: unknown, placed: boolean): void {
  if (!isPlainObject(config)) throw invalidOption('indexConfig', 'must be an object')
  for (const name of Object.keys(config)) {
    if (knownOfIndex.some((one) => one === name)) continue
    throw new HeedError('unsupported_option', `indexConfig has no '${name}'. Known: ${knownOfIndex.join(', ')}.`, {
      details: { option: `semanticRecall.indexConfig.${name}` },
    })
  }
  const { type = 'flat', metric = 'cosine', ...rest } = config as VectorIndexConfig
  if (!metrics.includes(metric)) throw invalidOption('indexConfig.metric', `must be one of ${metrics.join(', ')}`)
  if (placed) {
    indexSettings(config)
    return
  }
  if (type !== 'flat' || Object.values(rest).some((value) => value !== undefined)) {
    throw unsupportedIndex(`an index of type '${type}' with ${Object.keys(rest).join(', ') || 'its defaults'}`, 'type')
  }
  if (metric === 'euclidean') throw unsupportedIndex(`the metric '${metric}'`, 'metric')
}

/** The settings for the index of a vector store, nested by type: `m` and `efConstruction` may also be written beside it. */
export function indexSettings(config: VectorIndexConfig = {}): VectorIndexSettings | undefined {
  const { type, m, efConstruction, lists, hnsw, ivf } = config
  if (type !== undefined && !types.includes(type)) throw invalidOption('indexConfig.type', `must be one of ${types.join(', ')}`)
  const graph = { ...(m !== undefined && { m }), ...(efConstruction !== undefined && { efConstruction }), ...hnsw }
  const inverted = { ...(lists !== undefined && { lists }), ...ivf }
  for (const [name, value] of Object.entries({ ...graph, ...inverted })) {
    checkCount(`indexConfig.${name}`, value, 1, Number.MAX_SAFE_INTEGER)
  }
  for (const [name, given, of] of [['m', graph, 'hnsw'], ['lists', inverted, 'ivfflat']] as const) {
    if (Object.keys(given).length > 0 && type !== undefined && type !== of) {
      throw invalidOption(`indexConfig.${name}`, `is a setting of type '${of}', not of '${type}'`)
    }
  }
  if (type === undefined && Object.keys(graph).length === 0 && Object.keys(inverted).length === 0) return undefined
  return {
    type: type ?? (Object.keys(graph).length > 0 ? 'hnsw' : 'ivfflat'),
    ...(Object.keys(graph).length > 0 && { hnsw: graph }), ...(Object.keys(inverted).length > 0 && { ivf: inverted }),
  }
}

const metrics = ['cosine', 'euclidean', 'dotproduct']
const types: ReadonlyArray<NonNullable<VectorIndexConfig['type']>> = ['flat', 'hnsw', 'ivfflat']

function unsupportedIndex(what: string, name: string): HeedError {
  const why =
    'The built-in index is flat and compares by cosine (for vectors of length 1 that is the dot product).' +
    " Leave indexConfig out, or write { type: 'flat' }."
  return new HeedError('unsupported_option', `This store does not support ${what}. ${why}`, {
    details: { option: `semanticRecall.indexConfig.${name}` },
  })
}

function checkCount(name: string, value: unknown, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || Number(value) < least || Number(value) > most) {
    throw invalidOption(name, `must be a whole number from ${least} to ${most}`)
  }
}

function invalidOption(name: string, why: string): HeedError {
  const option = name === 'semanticRecall' ? name : `semanticRecall.${name}`
  return new HeedError('invalid_argument', `${option} ${why}.`, { details: { option } })
}

/** The batch size for models without `maxEmbeddingsPerCall`. */
const defaultBatch = 96

const byModel = new WeakMap<object, TextEmbedder>()
const byName = new Map<string, TextEmbedder>()

/** The embedder with its former one, unless both are the same model. */
export function textEmbedderWithFormer(embedder: EmbedderInput, former: EmbedderInput | undefined): TextEmbedder {
  const current = textEmbedder(embedder)
  const previous = former === undefined ? undefined : textEmbedder(former)
  return previous && previous.id !== current.id ? { ...current, former: previous } : current
}

/** The text embedder of a model that a program passes; the same object for the same model. */
export function textEmbedder(embedder: EmbedderInput): TextEmbedder {
  const known = typeof embedder === 'string' ? byName.get(embedder) : byModel.get(embedder)
  if (known) return known
  const model = resolveEmbedder(embedder)
  const most = model.maxEmbeddingsPerCall
  const maxBatch = typeof most === 'number' && most >= 1 && Number.isFinite(most) ? Math.floor(most) : defaultBatch
  const text: TextEmbedder = {
    id: embedderId(model),
    maxBatch,
    async embed(texts, signal) {
      const vectors: number[][] = []
      for (let start = 0; start < texts.length; start += maxBatch) {
        const { embeddings } = await model.doEmbed({ values: texts.slice(start, start + maxBatch), ...(signal && { abortSignal: signal }) })
        vectors.push(...embeddings)
      }
      return vectors
    },
  }
  if (typeof embedder === 'string') byName.set(embedder, text)
  else byModel.set(embedder, text)
  return text
}

/**
 * The id of a model's vectors, the same for its name and for its object: providers append the kind of a model to their own name, as in
 * `openai.embedding`.
 */
function embedderId({ provider, modelId }: { provider: string; modelId: string }): string {
  return `${provider.replace(/\.(?:text-?)?embeddings?$|\.generative-ai$/i, '')}/${modelId}`
}

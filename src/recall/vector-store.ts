import { HeedError } from '../base/errors.ts'

/** How vectors are compared. */
export type VectorMetric = 'cosine' | 'euclidean' | 'dotproduct'

/** How an index of a vector store is built. Each store has its own kinds. */
export interface VectorIndexSettings {
  type?: string
  hnsw?: { m?: number; efConstruction?: number }
  ivf?: { lists?: number }
}

/**
 * A store of vectors with metadata, such as Pinecone, Qdrant, Chroma or PostgreSQL. These are the names that the vector stores of other
 * frameworks have, so that their objects are accepted as they are. `vectorConformance` of `heed/testing` checks what recall relies on.
 */
export interface VectorStore {
  /** Names the store in the index of recall: a store with another id gets all vectors anew. Defaults to the name of its class. */
  readonly id?: string
  /** What joins the words of an index name, where `_` is not allowed. */
  readonly indexSeparator?: string
  /** Leaves an index of the same name and dimension as it is. */
  createIndex(args: {
    indexName: string; dimension: number; metric?: VectorMetric; indexConfig?: VectorIndexSettings
  }): Promise<unknown>
  listIndexes(): Promise<string[]>
  describeIndex(args: { indexName: string }): Promise<{ dimension: number; count: number; metric?: VectorMetric }>
  deleteIndex(args: { indexName: string }): Promise<unknown>
  /** Inserts vectors, or replaces those with the same ids. */
  upsert(args: { indexName: string; vectors: number[][]; metadata?: Array<Record<string, unknown>>; ids?: string[] }): Promise<unknown>
  /** The nearest vectors of those whose metadata has all values of the filter, nearest first. */
  query(args: {
    indexName: string; queryVector: number[]; topK?: number; filter?: Record<string, string>; includeVector?: boolean
  }): Promise<VectorMatch[]>
  /** An id that the index does not have is ignored. */
  deleteVector(args: { indexName: string; id: string }): Promise<unknown>
  /** Several at once. Without it, `deleteVector` is called for each. */
  deleteVectors?(
    args: { indexName: string; ids: string[]; filter?: never } | { indexName: string; filter: Record<string, string>; ids?: never },
  ): Promise<unknown>
}

/** A vector that a vector store found. */
export interface VectorMatch {
  id: string
  /** The similarity, higher where nearer; or the distance, lower where nearer. The order of the matches says which. */
  score: number
  metadata?: Record<string, unknown>
  vector?: number[]
}

/** Where the vectors of an embedder are, other than in the index of recall. */
export interface VectorPlace {
  store: VectorStore
  /** The id of the store. */
  name: string
  /** The id of the embedder that makes the same vectors and has them in the index of recall. */
  model: string
  metric: VectorMetric
  indexConfig?: VectorIndexSettings
}

/** The methods that recall calls. */
const methods = ['createIndex', 'listIndexes', 'upsert', 'query', 'deleteVector'] as const

export function isVectorStore(value: unknown): value is VectorStore {
  return typeof value === 'object' && value !== null && missingMethods(value).length === 0
}

/** The names of the methods that an object lacks to be a vector store. */
export function missingMethods(value: object): string[] {
  return methods.filter((name) => typeof Reflect.get(value, name) !== 'function')
}

/** The name of a store in the index of recall. */
export function nameOfStore(store: VectorStore): string {
  const given = store.id
  const name = typeof given === 'string' && given !== '' ? given : store.constructor.name
  if (name === '' || name === 'Object') {
    throw new HeedError('invalid_argument', 'A vector store needs an id, by which the index of recall knows it. Give it one.', {
      details: { option: 'vector' },
    })
  }
  return name
}

import { HeedError } from '../base/errors.ts'
import type { Processor } from '../processors/processor.ts'
import type { TextEmbedder } from '../recall/embedder.ts'
import type { EmbedderInput } from '../run/model/model-router.ts'
import type { SemanticRecallOptions } from '../run/options.ts'
import { textEmbedder } from './semantic/embedder.ts'
import { checkVectorOption, type BuiltInVectors } from './semantic/search.ts'
import { parseRecallOptions } from './semantic/setting.ts'

export interface SemanticRecallProcessorOptions extends SemanticRecallOptions {
  embedder?: EmbedderInput
  vector?: BuiltInVectors | false
}

/**
 * Recall as a processor. An agent with memory recalls without it; a `SemanticRecall` in a list replaces that, with its own options. Its
 * position in
 * the list does not matter: the recall block is at the end of the prompt.
 *
 * @example new Agent({ …, inputProcessors: [new SemanticRecall({ topK: 10, scope: 'thread' })] })
 */
export class SemanticRecall implements Processor<'semantic-recall'> {
  readonly id = 'semantic-recall'
  readonly options: SemanticRecallOptions
  readonly embedder: TextEmbedder | undefined

  constructor({ embedder, vector, ...options }: SemanticRecallProcessorOptions = {}) {
    if ('storage' in options) {
      throw new HeedError(
        'unsupported_option',
        'SemanticRecall uses the storage of the threads. Pass storage to the memory, the Heed or a MessageHistory.',
        { details: { option: 'storage' } },
      )
    }
    parseRecallOptions({ semanticRecall: options })
    checkVectorOption(vector)
    this.options = options
    this.embedder = embedder === undefined || vector === false ? undefined : textEmbedder(embedder)
  }
}

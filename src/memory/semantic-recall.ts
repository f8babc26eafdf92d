import { HeedError } from '../base/errors.ts'
import type { Processor } from '../processors/processor.ts'
import type { TextEmbedder } from '../recall/embedder.ts'
import type { EmbedderInput } from '../run/model/embedding-model.ts'
import type { SemanticRecallOptions } from '../run/options.ts'
import { textEmbedder } from './semantic/embedder.ts'
import { checkVectors, type BuiltInVectors } from './semantic/search.ts'
import { recallSettingIn } from './semantic/setting.ts'

export interface SemanticRecallProcessorOptions extends SemanticRecallOptions {
  embedder?: EmbedderInput
  vector?: BuiltInVectors | false
}

/**
 * Recall as a processor. An agent with memory recalls by itself; one that is given by hand takes its place. Where in the list it stands
 * changes nothing: what it shows comes at the end of the prompt.
 *
 * @example new Agent({ …, inputProcessors: [new SemanticRecall({ topK: 10, scope: 'thread' })] })
 */
export class SemanticRecall implements Processor<'semantic-recall'> {
  readonly id = 'semantic-recall'
  readonly options: SemanticRecallOptions
  readonly embedder: TextEmbedder | undefined

  constructor({ embedder, vector, ...options }: SemanticRecallProcessorOptions = {}) {
    if ('storage' in options) {
      throw new HeedError('unsupported_option', 'SemanticRecall finds messages where their threads are. Give the storage to the memory, the Heed or a MessageHistory.', { details: { option: 'storage' } })
    }
    recallSettingIn({ semanticRecall: options })
    checkVectors(vector)
    this.options = options
    this.embedder = embedder === undefined || vector === false ? undefined : textEmbedder(embedder)
  }
}

import { HeedError } from '../errors.ts'
import type { Processor } from '../processors/processor.ts'

/** Recall of messages by their meaning. Refused by name until Heed can do it. */
export class SemanticRecall implements Processor<'semantic-recall'> {
  readonly id = 'semantic-recall'

  constructor() {
    throw new HeedError('unsupported_option', "SemanticRecall can't recall anything yet. Leave it out; MessageHistory brings the last messages.", {
      details: { option: 'SemanticRecall' },
    })
  }
}

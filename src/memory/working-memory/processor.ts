import { HeedError } from '../../base/errors.ts'
import type { Processor } from '../../processors/processor.ts'
import type { WorkingMemoryOptions } from '../../run/options.ts'
import { parseWorkingMemory } from './setting.ts'

/**
 * Working memory as a processor. An agent with memory has working memory without it; a `WorkingMemory` in a list replaces its options. Its
 * position in the list does not matter: the content is at the end of the prompt.
 *
 * @example new Agent({ …, inputProcessors: [new WorkingMemory({ scope: 'thread', template: '# Task\n- Goal:' })] })
 */
export class WorkingMemory implements Processor<'working-memory'> {
  readonly id = 'working-memory'
  readonly options: WorkingMemoryOptions

  constructor(options: WorkingMemoryOptions = {}) {
    if (typeof options === 'object' && options !== null && 'storage' in options) {
      const why = 'WorkingMemory uses the storage of the threads. Pass storage to the memory, the Heed or a MessageHistory.'
      throw new HeedError('unsupported_option', why, { details: { option: 'storage' } })
    }
    parseWorkingMemory({ workingMemory: options })
    this.options = options
  }
}

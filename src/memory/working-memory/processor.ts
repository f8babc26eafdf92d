import { HeedError } from '../../base/errors.ts'
import type { Processor } from '../../processors/processor.ts'
import type { WorkingMemoryOptions } from '../../run/options.ts'
import { workingMemoryIn } from './setting.ts'

/**
 * Working memory as a processor. An agent whose memory has one uses that by itself; one that is given by hand takes its place. Where in
 * the list it stands changes nothing: what it shows comes at the end of the prompt.
 *
 * @example new Agent({ …, inputProcessors: [new WorkingMemory({ scope: 'thread', template: '# Task\n- Goal:' })] })
 */
export class WorkingMemory implements Processor<'working-memory'> {
  readonly id = 'working-memory'
  readonly options: WorkingMemoryOptions

  constructor(options: WorkingMemoryOptions = {}) {
    if (typeof options === 'object' && options !== null && 'storage' in options) {
      const why = 'WorkingMemory is kept where its threads are. Give the storage to the memory, the Heed or a MessageHistory.'
      throw new HeedError('unsupported_option', why, { details: { option: 'storage' } })
    }
    workingMemoryIn({ workingMemory: options })
    this.options = options
  }
}

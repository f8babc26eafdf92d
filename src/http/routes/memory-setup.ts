import { HeedError } from '../../base/errors.ts'
import { recallSettingIn } from '../../memory/semantic/setting.ts'
import { windowOf } from '../../memory/window.ts'
import { workingMemoryIn } from '../../memory/working-memory/setting.ts'
import { memoryConfig, memoryStatus } from '../schema/answer-schemas.ts'
import { memoryOf, type MemoryQuery } from './memory-of.ts'
import { route, type Route } from '../route.ts'
import { id, object } from '../schema/schemas.ts'
import { of } from './threads.ts'

/** How a memory is set up. */
export const memorySetup: readonly Route[] = [
  route<never, MemoryQuery>({
    method: 'GET', path: '/memory/status', summary: 'Whether the agent has a memory', answer: 'json', answers: memoryStatus, query: object(of),
    async handle(call) {
      await memoryOf(call)
      return { result: true, memoryType: 'local' }
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET', path: '/memory/config', summary: 'The options of a memory', answer: 'json', answers: memoryConfig, query: object(of),
    async handle(call) {
      const { options } = await memoryOf(call)
      const window = windowOf(options)
      const { topK, before, after, scope } = recallSettingIn(options) ?? {}
      const working = workingMemoryIn(options)
      return {
        config: {
          lastMessages: window === false ? false : window.low,
          semanticRecall: topK === undefined ? false : { topK, messageRange: { before, after }, scope },
          workingMemory: working ? { enabled: true, scope: working.scope, ...('template' in working.form ? { template: working.form.template } : {}) } : { enabled: false },
          generateTitle: options.generateTitle !== undefined && options.generateTitle !== false,
          observationalMemory: { enabled: false },
        },
      }
    },
  }),
  route<never, MemoryQuery>({
    method: 'GET', path: '/memory/observational-memory', summary: 'Always refused: no agent here keeps one', answer: 'json', query: object({ ...of, threadId: id }),
    handle: () => {
      throw new HeedError('unsupported_option', 'Observational memory is not enabled for this agent.')
    },
  }),
]

import { Agent, Heed, createTool } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

export const target = { resourceId: 'user-1', threadId: 'main' }

/** An agent whose first step calls a tool that holds until `release()`; with `slowModel` the model itself holds. */
export function desk(file, { slowModel = false } = {}) {
  let entered
  let release
  const began = new Promise((resolve) => (entered = resolve))
  const released = new Promise((resolve) => (release = resolve))
  const hold = createTool({
    id: 'hold',
    description: 'Holds until it is released.',
    inputSchema: { type: 'object', properties: {} },
    execute: async () => {
      entered()
      await released
      return { done: true }
    },
  })
  const model = scriptedModel(({ prompt }) => {
    const wantsTool = JSON.stringify(prompt.at(-1)).includes('Begin.')
    if (!wantsTool) return 'Done.'
    return slowModel ? { text: 'Done.', gate: released } : { toolCalls: [{ toolName: 'hold' }] }
  })
  const agent = new Agent({ id: 'guide', instructions: 'You plan trips.', model, tools: { hold } })
  const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: file }) })
  return { heed, agent, inTool: () => began, release }
}

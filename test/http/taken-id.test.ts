import { expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

it('[A2.4] an id that the thread has for something else is 409 over HTTP, for sends and for calls', async () => {
  const guide = new Agent({ id: 'guide', model: scriptedModel(['Four.'], { loop: true }) })
  const { ask } = await served({ guide })
  const memory = { thread: thread.threadId, resource: thread.resourceId }
  const asking = (content: string) => ask('/agents/guide/generate', { json: { messages: [{ id: 'ui-1', role: 'user', content }], memory } })
  expect((await asking('What is 2+2?')).status).toBe(200)
  const answers = await Promise.all([
    asking('What is 3+3?'),
    ask('/agents/guide/send-message', { json: { message: { id: 'ui-1', contents: 'What is 3+3?' }, ...thread } }),
    ask('/agents/guide/queue-message', { json: { message: 'What is 3+3?', ...thread }, headers: { 'idempotency-key': 'ui-1' } }),
    ask('/agents/guide/signals', { json: { signal: { id: 'ui-1', type: 'notification', contents: 'x' }, ...thread } }),
  ])
  for (const answer of answers) expect([answer.status, await answer.json()]).toMatchObject([409, { code: 'id_taken', details: { id: 'ui-1' } }])
  const { messages } = await (await guide.getMemory()).recall({ ...thread, perPage: false })
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
})

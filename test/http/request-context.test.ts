import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const auth = apiKeys({ 'a-long-random-key-1': { id: 'ada', resources: ['user-1'] } })
const headers = { authorization: 'Bearer a-long-random-key-1' }

/** An agent whose instructions contain its request context. */
function guide() {
  const model = scriptedModel(['Hello.'], { loop: true })
  const agent = new Agent({ id: 'guide', model, instructions: ({ requestContext }) => JSON.stringify(requestContext.all) })
  const told = () => JSON.stringify(model.calls.at(-1)?.prompt.find(({ role }) => role === 'system')?.content)
  return { agent, told, model }
}

describe('the request context of a server', () => {
  it('[H3.3] is what the hook answers, on every way to a run, whatever the caller writes', async () => {
    const { agent, told, model } = guide()
    const { ask } = await served({ guide: agent }, {
      auth,
      requestContext: ({ principal, request, given }) => ({ user: principal.id, agent: request.headers.get('user-agent') !== null, locale: given.locale }),
    })
    const forged = { requestContext: { user: 'eve', admin: true, locale: 'de' } }
    const ways: Array<[string, object]> = [
      ['generate', { messages: 'Hi', ...forged }],
      ['stream', { messages: 'Hi', ...forged, memory: { thread: 'thread-2', resource: 'user-1' } }],
      ['send-message?wait=outcome', { message: 'Hi', ...thread, ifIdle: { streamOptions: forged } }],
      ['signals?wait=outcome', { signal: { type: 'notification', contents: 'x' }, threadId: 'thread-3', ifIdle: { streamOptions: forged } }],
      ['notifications', { notification: { source: 'a', kind: 'b', summary: 'c', priority: 'urgent' }, threadId: 'thread-4', ifIdle: { streamOptions: forged } }],
    ]
    for (const [index, [path, json]] of ways.entries()) {
      const response = await ask(`/agents/guide/${path}`, { json, headers })
      expect(response.status, path).toBe(200)
      await response.text()
      await expect.poll(() => model.callCount).toBe(index + 1)
      expect(told(), path).toContain(JSON.stringify(JSON.stringify({ user: 'ada', agent: true, locale: 'de' })).slice(1, -1))
    }
    // Also where the caller writes nothing at all.
    await ask('/agents/guide/send-message?wait=outcome', { json: { message: 'Hi', threadId: 'thread-5' }, headers })
    await expect.poll(() => model.callCount).toBe(ways.length + 1)
    expect(told()).toContain('ada')
  })

  it('is what the caller writes where there is no hook', async () => {
    const { agent, told } = guide()
    const { ask } = await served({ guide: agent })
    await ask('/agents/guide/generate', { json: { messages: 'Hi', requestContext: { locale: 'de' } } })
    expect(told()).toContain('locale')
  })
})

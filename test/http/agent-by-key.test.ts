import { expect, it } from 'vitest'
import { Agent, InMemoryStore, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { listed, request } from './every-route.ts'
import { served } from './serving.ts'

const names = { agentId: 'byKey', threadId: 't', resourceId: 'u', runId: 'r', signalId: 's', notificationId: 'n', scheduleId: 'c', watchId: 'w' }

it('[H5.7] every route finds an agent by its key in `agents` too', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'ok'), memory: new Memory() })
  const { ask } = await served({ first: new Agent({ id: 'first', model: scriptedModel(() => 'ok') }), byKey: agent })
  const unknown: string[] = []
  const asked: string[] = []
  for (const { path, method, operation } of await listed(ask)) {
    const inQuery = operation.parameters.some(({ name }) => name === 'agentId')
    const inBody = 'agentId' in (operation.requestBody?.content['application/json']?.schema.properties ?? {})
    if (!inQuery && !inBody) continue
    const { url, init } = request(path, method, operation, names)
    const controller = new AbortController()
    const response = await ask(url.replace('/agents/guide', '/agents/byKey'), { ...init, signal: controller.signal })
    asked.push(`${method} ${path}`)
    if (response.headers.get('content-type')?.startsWith('application/json') && (await response.text()).includes('unknown_agent')) unknown.push(`${method} ${path}`)
    controller.abort()
  }
  expect(unknown).toEqual([])
  expect(asked.length).toBeGreaterThan(60)
})

it('[H5.7] the memory of a request is that of the agent that its query or body names', async () => {
  const memoryOf = () => new Memory({ storage: new InMemoryStore() })
  const [one, two] = ['one', 'two'].map((id) => new Agent({ id, model: scriptedModel(() => 'ok'), memory: memoryOf() })) as [Agent, Agent]
  const { ask } = await served({ one, keyOfTwo: two })
  const has = async (agent: Agent, threadId: string) => (await (await agent.getMemory()).getThreadById({ threadId })) !== null
  expect((await ask('/memory/threads?agentId=keyOfTwo', { json: { threadId: 'q', resourceId: 'u' } })).status).toBe(200)
  expect((await ask('/memory/threads', { json: { threadId: 'b', resourceId: 'u', agentId: 'two' } })).status).toBe(200)
  expect([await has(two, 'q'), await has(two, 'b'), await has(one, 'q'), await has(one, 'b')]).toEqual([true, true, false, false])
  const both = await ask('/memory/threads?agentId=one', { json: { threadId: 'x', resourceId: 'u', agentId: 'two' } })
  expect([both.status, await both.text()]).toEqual([400, expect.stringContaining('agentId') as string])
})

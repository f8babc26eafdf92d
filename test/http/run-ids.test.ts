import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, type RemoteOption } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { soon } from '../thread/said.ts'
import { served } from './serving.ts'

const keys = { alice: 'key-of-alice-0000000000', bob: 'key-of-bob-000000000000', admin: 'key-of-admin-0000000000' }
const auth = apiKeys({
  [keys.alice]: { id: 'alice', resources: ['alice'] }, [keys.bob]: { id: 'bob', resources: ['bob'] }, [keys.admin]: { id: 'admin', resources: '*' },
})

/** Alice has a run that waits on her thread, and one without a thread that ended. */
async function world(options?: RemoteOption[]) {
  const paid: string[] = []
  const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({}), execute: (_, { resourceId = 'nobody' }) => paid.push(resourceId) })
  const model = scriptedModel(({ prompt }) => (JSON.stringify(prompt.at(-1)).includes('Pay') ? { toolCalls: [{ toolName: 'pay', input: {} }] } : 'Hello.'))
  const agent = new Agent({ id: 'guide', model, tools: { pay }, ...(options ? { remote: { options } } : {}) })
  const { ask } = await served({ guide: agent }, { auth })
  const post = async (who: keyof typeof keys, path: string, json: object) => {
    const response = await ask(`/agents/guide/${path}`, { json, headers: { authorization: `Bearer ${keys[who]}` } })
    return { status: response.status, text: await response.text() }
  }
  const thread = { threadId: 'of-alice', resourceId: 'alice' }
  const sent = await post('alice', 'send-message?wait=outcome', { message: 'Pay', ...thread })
  const { outcome: { runId: waiting } } = JSON.parse(sent.text) as { outcome: { runId: string } }
  await soon(() => agent.activeRun(thread)).toMatchObject({ runId: waiting, status: 'suspended' })
  const { runId: ended } = JSON.parse((await post('alice', 'generate', { messages: 'Hi' })).text) as { runId: string }
  return { post, waiting, ended, paid, agent, thread }
}

/** The doors at which a request may choose the id of its run. */
const doors: Record<string, (runId: string) => object> = {
  generate: (runId) => ({ messages: 'Hi', runId, memory: { thread: 'of-bob', resource: 'bob' } }),
  stream: (runId) => ({ messages: 'Hi', runId, memory: { thread: 'of-bob', resource: 'bob' } }),
  'stream-until-idle': (runId) => ({ messages: 'Hi', runId }),
  'send-message': (runId) => ({ message: 'Hi', threadId: 'of-bob', ifIdle: { streamOptions: { runId } } }),
  'queue-message': (runId) => ({ message: 'Hi', threadId: 'of-bob', ifIdle: { streamOptions: { runId } } }),
  signals: (runId) => ({ signal: { type: 'notification', contents: 'x' }, threadId: 'of-bob', ifIdle: { streamOptions: { runId } } }),
  'send-tool-approval': (runId) => ({ approved: true, threadId: 'of-bob', messages: 'Hi', streamOptions: { runId } }),
  notifications: (runId) => ({ notification: { source: 'a', kind: 'b', summary: 'c' }, threadId: 'of-bob', ifIdle: { streamOptions: { runId } } }),
}

describe('the id of a run', () => {
  it('[H3.14] that a limited principal chooses is refused by name, also if another resource has it: the answers are equal', async () => {
    const { post, waiting, ended } = await world()
    for (const [door, body] of Object.entries(doors)) {
      const answers = await Promise.all([waiting, ended, 'no-run'].map((runId) => post('bob', door, body(runId))))
      expect([door, answers[0]]).toMatchObject([door, { status: 403, text: expect.stringContaining('"option":"runId"') as string }])
      expect(new Set(answers.map(({ text }) => text)).size, door).toBe(1)
    }
  })

  it('[H3.14] may be chosen where the author of the agent allows it, and by operators', async () => {
    const allowed = await world(['runId'])
    expect(JSON.parse((await allowed.post('bob', 'generate', doors.generate?.('mine') ?? {})).text)).toMatchObject({ runId: 'mine' })
    const { post } = await world()
    expect(JSON.parse((await post('admin', 'generate', { messages: 'Hi', runId: 'mine' })).text)).toMatchObject({ runId: 'mine' })
  })

  it('[H5.9] of the run that continues with the results of a client is that of its streamOptions', async () => {
    const { post } = await world()
    const continued = { ...doors['send-tool-approval']?.('continued'), resourceId: 'bob' }
    expect(JSON.parse((await post('admin', 'send-tool-approval', continued)).text)).toMatchObject({ runId: 'continued' })
    expect(await post('admin', 'send-tool-approval', continued)).toMatchObject({ status: 400, text: expect.stringContaining('Leave runId out') as string })
  })

  it('[H3.14] of a run on a thread does not let a caller decide about its calls who begins a run under the same id', async () => {
    const { post, waiting, paid, agent, thread } = await world(['runId'])
    const taken = await post('bob', 'generate', { messages: 'Hi', runId: waiting })
    expect(taken).toMatchObject({ status: 400, text: expect.stringContaining('is taken') as string })
    for (const path of ['approve-tool-call', 'approve-tool-call-generate', 'decline-tool-call-generate'])
      expect(await post('bob', path, { runId: waiting })).toMatchObject({ status: 409, text: expect.stringContaining('run_not_suspended') as string })
    expect(paid).toEqual([])
    expect(await agent.activeRun(thread)).toMatchObject({ runId: waiting, status: 'suspended' })
    expect(await post('alice', 'approve-tool-call-generate', { runId: waiting })).toMatchObject({ status: 200 })
    expect(paid).toEqual(['alice'])
  })
})

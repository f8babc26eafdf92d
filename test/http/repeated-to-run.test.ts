import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { Agent, createTool } from '../../src/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const key = { one: 'a-long-random-key-1', two: 'a-long-random-key-2' }
const auth = apiKeys({ [key.one]: { id: 'one', resources: ['user-1'] }, [key.two]: { id: 'two', resources: ['user-2'] } })
const as = (name: keyof typeof key) => ({ authorization: `Bearer ${key[name]}` })

/** A run that lasts until `end` is called. */
async function running() {
  const held = Promise.withResolvers<string>()
  onTestFinished(() => held.resolve('over'))
  const hold = createTool({ id: 'hold', inputSchema: z.object({}), execute: () => held.promise })
  const agent = new Agent({ id: 'guide', model: scriptedModel([{ toolCalls: [{ toolName: 'hold', input: {} }] }, 'Done.', 'Done.']), tools: { hold } })
  const { ask, server } = await served({ guide: agent }, { auth })
  const send = async (json: object, idempotencyKey?: string, who: keyof typeof key = 'one') => {
    const response = await ask('/agents/guide/send-message', { json, headers: { ...as(who), ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }) } })
    return { status: response.status, ...((await response.json()) as { runId: string; code?: string; duplicate?: true; signal?: { id: string } }) }
  }
  const { runId } = await send({ message: 'Go.', ...thread })
  await expect.poll(() => agent.activeRun(thread)).toMatchObject({ runId, status: 'running' })
  const end = async () => {
    held.resolve('over')
    await expect.poll(() => agent.activeRun(thread)).toBeNull()
  }
  const said = async () => (await (await agent.getMemory()).recall({ ...thread })).messages.filter(({ role }) => role !== 'assistant').length
  return { send, end, said, runId, url: server.url }
}

describe('a send to a run that is over when it is repeated', () => {
  it('[H6.3] is answered as the first under its key, for its own sender and its own words alone', async () => {
    const { send, end, said, runId } = await running()
    const first = await send({ message: 'Left.', runId }, 'key-1')
    await end()
    expect(await send({ message: 'Left.', runId }, 'key-1')).toEqual({ ...first, duplicate: true })
    expect(await send({ message: 'Right.', runId }, 'key-1')).toMatchObject({ status: 409, code: 'idempotency_key_reused' })
    expect(await send({ message: 'Left.', runId }, 'key-2')).toMatchObject({ status: 409, code: 'no_active_run' })
    expect(await send({ message: 'Left.', runId })).toMatchObject({ status: 409, code: 'no_active_run' })
    expect(await send({ message: 'Left.', runId }, 'key-1', 'two')).toMatchObject({ status: 409, code: 'no_active_run' })
    expect(await send({ message: 'Left.', runId, threadId: 'thread-2' }, 'key-3')).not.toMatchObject({ duplicate: true })
    expect(await said()).toBe(2)
  })

  it('[H6.3] is answered as the first under the id that it gave', async () => {
    const { send, end, said, runId } = await running()
    const first = await send({ message: { contents: 'Left.', id: 'mine' }, runId })
    await end()
    expect(await send({ message: { contents: 'Left.', id: 'mine' }, runId })).toEqual({ ...first, duplicate: true })
    expect(await said()).toBe(2)
  })

  it('[H6.3] is no failure to a client whose answer was lost', async () => {
    const { end, said, runId, url } = await running()
    let lost = 0
    const client = new HeedClient({
      baseUrl: url,
      headers: as('one'),
      async fetch(...args) {
        const response = await fetch(...args)
        if (lost++ > 0) return response
        await response.text()
        await end()
        throw new TypeError('terminated')
      },
    })
    expect(await client.getAgent('guide').sendMessage({ message: 'Left.', runId })).toMatchObject({ accepted: true, runId, duplicate: true })
    expect([lost, await said()]).toEqual([2, 2])
  })
})

import { describe, expect, it } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, type ThreadSnapshot } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const thread = { threadId: 't', resourceId: 'u' }

async function snapshotOn(type: string, agent: Agent): Promise<ThreadSnapshot> {
  const watching = await agent.subscribeToThread(thread)
  agent.sendMessage('go', thread)
  for await (const chunk of watching.stream) {
    if (chunk.type !== type) continue
    const late = await agent.subscribeToThread({ ...thread, snapshot: true })
    const { value } = await late.stream[Symbol.asyncIterator]().next()
    late.unsubscribe()
    watching.unsubscribe()
    return value.data
  }
  throw new Error(`no ${type}`)
}

describe('a snapshot requested at the last chunk', () => {
  it('[W1.1] of a run has the status idle, with the answer in its messages', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel(['done']) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const snapshot = await snapshotOn('finish', agent)
    expect(snapshot).toMatchObject({ status: 'idle', runId: null })
    expect(JSON.stringify(snapshot.messages)).toContain('done')
    await heed.close()
  })

  it('[W1.1] of a suspended run has the calls that wait', async () => {
    const pay = createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' })
    const agent = new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }]), tools: { pay } })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    expect(await snapshotOn('tool-call-approval', agent)).toMatchObject({ status: 'suspended', suspended: [{ toolName: 'pay', kind: 'approval' }] })
    await heed.close()
  })

  it('[G1.10] contains nothing that a transform hides', async () => {
    const hide = { input: () => 'in', output: () => 'out' }
    const card = createTool({ id: 'card', execute: () => 'SECRET42', transform: { display: hide, transcript: hide } })
    const agent = new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 'card', input: { number: 'SECRET42' } }] }, 'ok']), tools: { card } })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const snapshot = await snapshotOn('finish', agent)
    expect(JSON.stringify(snapshot)).toContain('"args":"in"')
    expect(JSON.stringify(snapshot)).not.toContain('SECRET42')
    await heed.close()
  })
})

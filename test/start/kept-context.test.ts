import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, RequestContext, type AgentConfig, type LogFields } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds } from '../thread/places.ts'
import { idle, soon, texts } from '../thread/said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

function shop(more: Partial<AgentConfig> = {}) {
  const seen: unknown[] = []
  const model = scriptedModel(({ prompt }) =>
    prompt.at(-1)?.role === 'user' ? { toolCalls: [{ toolName: 'pay', toolCallId: 'c1', input: { amount: 5 } }] } : 'Done.')
  const pay = createTool({
    id: 'pay',
    requireApproval: true,
    inputSchema: z.object({ amount: z.number() }),
    execute: (_, { requestContext }) => (seen.push(requestContext.all), 'paid'),
  })
  return { agent: new Agent({ id: 'shop', model, tools: { pay }, ...more }), model, seen }
}

async function suspend(agent: Agent, requestContext: RequestContext): Promise<void> {
  agent.sendMessage('Buy it.', { ...thread, ifIdle: { streamOptions: { requestContext } } })
  await soon(async () => (await agent.activeRun(thread))?.status).toBe('suspended')
}

describe.each(sharedPlaceKinds())('a call that waits for approval over a restart, $name', ({ make }) => {
  it.each<[string, Partial<AgentConfig>]>([
    ['without a schema', {}],
    ['with a schema that declares some of it', { requestContextSchema: z.object({ tenant: z.string() }) }],
  ])('[R10.1] runs with the JSON part of its request context, %s', async (_, config) => {
    const place = make()
    const before = shop(config)
    const first = openHeed({ agent: before.agent }, place.store())
    const context = { tenant: 'acme', limits: { amount: [1, 5] }, nothing: undefined }
    await suspend(before.agent, new RequestContext(context))
    await first.close()

    const after = shop(config)
    const logged: unknown[] = []
    const say = (message: string, fields?: LogFields) => void logged.push([message, fields])
    openHeed({ agent: after.agent }, place.store(), { logger: { debug: () => {}, info: () => {}, warn: say, error: say } })
    await after.agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })
    await idle(after.agent, thread)
    expect(after.seen).toEqual([{ tenant: 'acme', limits: { amount: [1, 5] } }])
    expect(logged).toEqual([])
  })

  it('[R10.3] does not run its tool where a part of the context was lost, and the model reads why', async () => {
    const place = make()
    const before = shop()
    const first = openHeed({ agent: before.agent }, place.store())
    await suspend(before.agent, new RequestContext<Record<string, unknown>>({ tenant: 'acme', database: () => 'rows' }))
    await first.close()

    const after = shop()
    openHeed({ agent: after.agent }, place.store())
    await after.agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })
    await idle(after.agent, thread)
    expect(after.seen).toEqual([])
    expect(texts(after.model.calls.at(-1)?.prompt ?? []).at(-1)).toMatch(/pay was not run: 'database' of the request context .* lost/)
    expect((await after.agent.threads().store.listRuns(thread))[0]).toMatchObject({ status: 'finished', lost: ['requestContext.database'] })
  })

  it('[R10.3] runs its tool with the whole context while its process runs', async () => {
    const { agent, seen } = shop()
    openHeed({ agent }, make().store())
    const database = () => 'rows'
    await suspend(agent, new RequestContext<Record<string, unknown>>({ database }))
    await agent.sendToolApproval({ ...thread, toolCallId: 'c1', approved: true })
    await idle(agent, thread)
    expect(seen).toEqual([{ database }])
  })
})

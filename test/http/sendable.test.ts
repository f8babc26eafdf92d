import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { HeedClient } from '../../src/client/index.ts'
import { Agent, createTool, RequestContext } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

/** A client whose server must not be asked. */
const unasked = () => new HeedClient({ baseUrl: 'http://localhost', retries: 0, fetch: () => Promise.reject(new Error('The server was asked.')) }).getAgent('guide')
const tool = createTool({ id: 'look', inputSchema: z.object({ at: z.string() }), execute: () => 'seen' })

describe('what a client sends', () => {
  it.each<[field: string, options: Record<string, unknown>]>([
    ['structuredOutput.schema', { structuredOutput: { schema: z.object({ n: z.number() }) } }],
    ['clientTools.look.inputSchema', { clientTools: { look: { inputSchema: tool.inputSchema } } }],
    ['clientTools.look.execute', { clientTools: { look: { inputSchema: { type: 'object' }, execute: () => 'seen' } } }],
    ['requestContext.db', { requestContext: new RequestContext({ db: () => 'handle' }) }],
    ['requestContext.plans', { requestContext: { plans: new Map([['ada', 'gold']]) } }],
    ['modelSettings.temperature', { modelSettings: { temperature: Number.NaN } }],
    ['memory.thread.metadata.f', { memory: { thread: { id: 't', metadata: { f: () => 1 } }, resource: 'u' } }],
  ])('[H6.10] is rejected by name where JSON would leave it out or change it: %s', async (field, options) => {
    const refused = { code: 'invalid_argument', details: { field }, message: expect.stringContaining(field) as string }
    await expect(unasked().generate('Hi.', options)).rejects.toMatchObject(refused)
    await expect(unasked().stream('Hi.', options)).rejects.toMatchObject(refused)
    const { memory: _, ...streamOptions } = options
    if (Object.keys(streamOptions).length === 0) return
    const inside = { ...refused, details: { field: `ifIdle.streamOptions.${field}` } }
    await expect(unasked().sendMessage({ message: 'Hi.', ...thread, ifIdle: { streamOptions } })).rejects.toMatchObject(inside)
  })

  it('[H6.10] has the values of a RequestContext, and times as text', async () => {
    const model = scriptedModel(() => 'Fine.')
    const guide = new Agent({ id: 'guide', model, instructions: ({ requestContext }) => `For ${String(requestContext.get('user'))}, ${String(requestContext.get('since'))}.` })
    const { client } = await served({ guide })
    await client.getAgent('guide').generate('Hi.', { requestContext: new RequestContext({ user: 'Ada', since: new Date(0) }) })
    expect(model.calls[0]?.prompt[0]?.content).toBe('For Ada, 1970-01-01T00:00:00.000Z.')
  })
})

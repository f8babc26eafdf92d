import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore, RequestContext, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { memoryPlace } from '../thread/places.ts'

describe('resumeData', () => {
  const code = createTool({
    id: 'login',
    resumeSchema: z.object({ code: z.string().regex(/^\d{6}$/).transform(Number) }),
    execute: (_input, { resumeData, suspend }) => (resumeData ? { entered: resumeData.code } : suspend({ ask: 'code' })),
  })

  it('is refused when the tool would not take it, and the call goes on waiting', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel([{ toolCalls: [{ toolName: 'login', input: {} }] }, 'in']), tools: { login: code } })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
    const thread = { threadId: 't', resourceId: 'u' }
    const { runId, suspended } = await agent.generate('Log in', { memory: { thread: 't', resource: 'u' } })
    expect(suspended).toMatchObject([{ toolName: 'login', kind: 'suspend', payload: { ask: 'code' } }])
    const bad = { code: '12' }
    await expect(agent.sendStreamResume({ ...thread, resumeData: bad })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'resumeData' } })
    await expect(agent.sendToolApproval({ ...thread, approved: true, resumeData: bad })).rejects.toMatchObject({ code: 'invalid_argument' })
    await expect(agent.resumeStream(bad, { runId })).rejects.toMatchObject({ code: 'invalid_argument' })
    const stream = await agent.resumeStream({ code: '123456' }, { runId })
    expect(await stream.text).toBe('in')
    expect(await stream.toolResults).toMatchObject([{ result: { entered: 123456 } }])
    await heed.close()
  })

  /** Tools that are made for a user, and can't be made without one. */
  function clerk() {
    const model = scriptedModel(({ prompt }) => (prompt.some(({ role }) => role === 'tool') ? 'In.' : { toolCalls: [{ toolName: 'login', toolCallId: 'c1', input: {} }] }))
    return new Agent({
      id: 'clerk',
      model,
      requestContextSchema: z.object({ user: z.string() }),
      tools: ({ requestContext }) => {
        const user = requestContext.get('user') as string
        const description = user.toUpperCase()
        return { login: createTool({ ...loginOf(user), description }) }
      },
    })
  }
  const loginOf = (user: string) => ({
    id: 'login',
    resumeSchema: z.object({ code: z.literal(user) }),
    execute: (_input: unknown, { resumeData, suspend }: { resumeData?: { code: string } | undefined; suspend(payload: unknown): unknown }) =>
      resumeData ? { user, ...resumeData } : suspend({ ask: 'code' }),
  })
  const memory = { thread: 't', resource: 'u' }
  const requestContext = () => new RequestContext({ user: 'ada' })

  it('[R6.5] is checked by the tool that the request of its run had', async () => {
    const agent = clerk()
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    const { runId } = await agent.generate('Log in', { memory, requestContext: requestContext() })
    await expect(agent.resumeStream({ code: 'eve' }, { runId })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'resumeData' } })
    expect(await (await agent.resumeStream({ code: 'ada' }, { runId })).text).toBe('In.')
    await heed.close()
  })

  it('[R6.5] is checked so after a restart too, with what is declared of the request', async () => {
    const kept = memoryPlace()
    const first = clerk()
    const before = new Heed({ agents: { first }, storage: kept.store(), logger: silentLogger })
    await first.generate('Log in', { memory, requestContext: requestContext() })
    await before.close()
    const agent = clerk()
    const heed = new Heed({ agents: { agent }, storage: kept.store(), logger: silentLogger })
    const thread = { threadId: 't', resourceId: 'u' }
    await expect(agent.sendStreamResume({ ...thread, resumeData: { code: 'eve' } })).rejects.toMatchObject({ code: 'invalid_argument' })
    expect(await agent.sendStreamResume({ ...thread, resumeData: { code: 'ada' } })).toMatchObject({ accepted: true, toolCallId: 'c1' })
    await heed.close()
  })

  it('[R6.5] is left to the run where the tool can not be found', async () => {
    const agent = new Agent({
      id: 'a',
      model: scriptedModel([{ toolCalls: [{ toolName: 'login', input: {} }] }, 'In.']),
      tools: ({ requestContext }) => {
        if (requestContext.get('open') !== 'yes') throw new Error('not for you')
        return { login: code }
      },
    })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    const context = new RequestContext({ open: 'yes' })
    const { runId } = await agent.generate('Log in', { memory, requestContext: context })
    context.set('open', 'no')
    await expect((await agent.resumeStream({ code: '123456' }, { runId })).result).rejects.toThrow('not for you')
    await heed.close()
  })
})

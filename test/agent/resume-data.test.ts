import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Heed, InMemoryStore } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

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
})

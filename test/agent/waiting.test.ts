import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { RequestContext } from '../../src/run/request-context.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, typesOf } from './asking.ts'

const paying = (amount = 5) => scriptedModel([{ text: 'Paying.', toolCalls: [{ toolName: 'pay', input: { amount } }] }, 'Paid.'])

function payTool(config: Partial<Parameters<typeof createTool>[0]> = {}) {
  const paid: unknown[] = []
  const tool = createTool({
    ...config,
    id: 'pay',
    inputSchema: z.object({ amount: z.number() }),
    execute: async (input) => {
      paid.push(input)
      return 'ok'
    },
  } as Parameters<typeof createTool>[0])
  return { tool, paid }
}

const request = (toolName: string, args: object) =>
  ({ id: expect.any(String) as string, path: ['a', toolName], toolName, args, digest: expect.any(String) as string })

describe('a call that needs approval', () => {
  it('waits: nothing is run, and the result and the stream say what for', async () => {
    const { tool, paid } = payTool({ requireApproval: true })
    const model = paying()
    const stream = await new Agent({ id: 'a', model, tools: { pay: tool } }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(paid).toEqual([])
    expect(model.callCount).toBe(1)
    expect(await stream.finishReason).toBe('suspended')
    expect(await stream.suspended).toEqual([{ toolCallId: 'call_0_0', toolName: 'pay', args: { amount: 5 }, kind: 'approval', request: request('pay', { amount: 5 }) }])
    expect(typesOf(chunks).at(-1)).toBe('tool-call-approval')
    const [asked] = of(chunks, 'tool-call-approval')
    expect(asked?.payload).toMatchObject({ toolCallId: 'call_0_0', toolName: 'pay', args: { amount: 5 } })
    expect(JSON.parse(asked?.payload.resumeSchema ?? '')).toMatchObject({ required: ['approved'] })
  })

  it('may be decided by the input', async () => {
    const seen: unknown[] = []
    const requireApproval = async (input: unknown, context: unknown) => {
      seen.push(context)
      return (input as { amount: number }).amount > 10
    }
    const { tool, paid } = payTool({ requireApproval })
    const agent = (amount: number) => new Agent({ id: 'a', model: paying(amount), tools: { pay: tool } })
    const requestContext = new RequestContext({ user: 'u1' })
    expect((await agent(5).generate('Go.', { runId: 'run-1', requestContext })).text).toBe('Paid.')
    expect((await agent(50).generate('Go.')).finishReason).toBe('suspended')
    expect(paid).toEqual([{ amount: 5 }])
    expect(seen[0]).toEqual({ toolCallId: 'call_0_0', runId: 'run-1', taintedBy: [], requestContext, messages: [{ role: 'user', content: [{ type: 'text', text: 'Go.' }] }] })
  })

  it('is any call with requireToolApproval', async () => {
    const { tool, paid } = payTool()
    const { suspended } = await new Agent({ id: 'a', model: paying(), tools: { pay: tool } }).generate('Go.', { requireToolApproval: true })
    expect(suspended).toHaveLength(1)
    expect(paid).toEqual([])
  })

  it('is not run when the question itself fails', async () => {
    const { tool, paid } = payTool({ requireApproval: () => Promise.reject(new Error('no policy')) })
    const { toolResults } = await new Agent({ id: 'a', model: paying(), tools: { pay: tool } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: 'pay failed: no policy' }])
    expect(paid).toEqual([])
  })

  it('is not asked for when its input is bad', async () => {
    const { tool } = payTool({ requireApproval: true })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', input: {} }] }, 'Sorry.'])
    const { toolResults, suspended } = await new Agent({ id: 'a', model, tools: { pay: tool } }).generate('Go.')
    expect(suspended).toEqual([])
    expect(toolResults).toMatchObject([{ isError: true }])
  })

  it('waits beside calls that ran: their results are there', async () => {
    const { tool } = payTool({ requireApproval: true })
    const look = createTool({ id: 'look', execute: async () => 'seen' })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'pay', input: { amount: 5 } }, { toolName: 'look' }] }])
    const result = await new Agent({ id: 'a', model, tools: { pay: tool, look } }).generate('Go.')
    expect(result.finishReason).toBe('suspended')
    expect(result.toolResults).toMatchObject([{ toolName: 'look', result: 'seen' }])
    expect(result.suspended).toMatchObject([{ toolName: 'pay' }])
  })
})

describe('a tool that suspends itself', () => {
  const resumeSchema = z.object({ code: z.string() })
  const login = (payload: unknown, after?: () => unknown) => createTool({
    id: 'login',
    suspendSchema: z.object({ question: z.string() }),
    resumeSchema,
    execute: async (_, { suspend, resumeData }) => {
      if (resumeData) return `logged in with ${resumeData.code}`
      try {
        return suspend(payload as { question: string })
      } catch (error) {
        if (after) return after()
        throw error
      }
    },
  })
  const model = () => scriptedModel([{ toolCalls: [{ toolName: 'login' }] }, 'In.'])

  it('ends the run with what it asks for', async () => {
    const stream = await new Agent({ id: 'a', model: model(), tools: { login: login({ question: 'Code?' }) } }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(await stream.finishReason).toBe('suspended')
    expect(await stream.suspended).toEqual([{ toolCallId: 'call_0_0', toolName: 'login', args: {}, kind: 'suspend', payload: { question: 'Code?' }, request: request('login', {}) }])
    const [asked] = of(chunks, 'tool-call-suspended')
    expect(asked?.payload).toMatchObject({ toolName: 'login', args: {}, suspendPayload: { question: 'Code?' } })
    expect(JSON.parse(asked?.payload.resumeSchema ?? '')).toMatchObject({ properties: { code: { type: 'string' } } })
    expect(typesOf(chunks)).not.toContain('finish')
    expect(typesOf(chunks)).not.toContain('tool-error')
  })

  it('is suspended also when it catches what suspend throws', async () => {
    const { suspended } = await new Agent({ id: 'a', model: model(), tools: { login: login({ question: 'Code?' }, () => 'never mind') } }).generate('Go.')
    expect(suspended).toHaveLength(1)
  })

  it.each([
    ['what JSON has no word for', 1n, "The payload that login suspended with can't be stored as JSON"],
    ['what does not match its suspendSchema', { question: 7 }, "doesn't match its suspendSchema: question: "],
  ])('can\'t suspend with %s', async (_, payload, message) => {
    const { toolResults, suspended } = await new Agent({ id: 'a', model: model(), tools: { login: login(payload) } }).generate('Go.')
    expect(suspended).toEqual([])
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining(message) }])
  })
})

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import type { AgentsInput } from '../../src/agent/config.ts'
import { RequestContext } from '../../src/run/request-context.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import type { ToolsInput } from '../../src/run/tools/tool-set.ts'
import { scriptedModel, type ScriptedModel } from '../../src/testing/index.ts'
import { rejection } from './asking.ts'

const plan = (value: string) => new RequestContext({ plan: value })

describe('what depends on the request', () => {
  it('[G1.7] are instructions, model, tools, agents, default options, processors and metadata', async () => {
    const models: Record<string, ScriptedModel> = {
      free: scriptedModel(['free answer']),
      paid: scriptedModel([{ toolCalls: [{ toolName: 'export' }] }, 'paid answer']),
    }
    const expert = new Agent({ id: 'expert', description: 'Knows.', model: scriptedModel(['x']) })
    const seen: unknown[] = []
    const agent = new Agent({
      id: 'a',
      instructions: ({ requestContext }) => `You serve ${String(requestContext.get('plan'))} users.`,
      model: async ({ requestContext }) => models[String(requestContext.get('plan'))] ?? expectNever(),
      tools: ({ requestContext }): ToolsInput => {
        const paid = requestContext.get('plan') === 'paid'
        return paid ? { export: createTool({ id: 'export', execute: async (_, context) => context.requestContext.get('plan') }) } : {}
      },
      agents: ({ requestContext }): AgentsInput => (requestContext.get('plan') === 'paid' ? { expert } : {}),
      defaultOptions: ({ requestContext }) => ({ modelSettings: { temperature: requestContext.get('plan') === 'paid' ? 1 : 0 } }),
      inputProcessors: ({ requestContext }) => [{
        id: 'note',
        processInput: (args) => void seen.push([requestContext.get('plan'), args.requestContext.get('plan')]),
      }],
      metadata: async ({ requestContext }) => ({ tier: requestContext.get('plan') }),
    })
    await agent.generate('Hi', { requestContext: plan('free') })
    const { toolResults } = await agent.generate('Hi', { requestContext: plan('paid') })

    expect(models.free?.calls[0]).toMatchObject({ temperature: 0, prompt: [{ content: 'You serve free users.' }, {}] })
    expect(models.free?.calls[0]).not.toHaveProperty('tools')
    expect(models.paid?.calls[0]).toMatchObject({ temperature: 1, tools: [{ name: 'agent-expert', description: 'Knows.' }, { name: 'export' }] })
    expect(toolResults).toMatchObject([{ result: 'paid' }])
    expect(seen).toEqual([['free', 'free'], ['paid', 'paid']])
    expect(await agent.getMetadata(plan('paid'))).toEqual({ tier: 'paid' })
  })

  it('is an empty context when the call has none, or the one of the default options', async () => {
    const seen: unknown[] = []
    const instructions = ({ requestContext }: { requestContext: RequestContext }) => {
      seen.push(requestContext.all)
      return ''
    }
    await new Agent({ id: 'a', instructions, model: scriptedModel(['Hi.']) }).generate('Go.')
    await new Agent({ id: 'a', instructions, model: scriptedModel(['Hi.']), defaultOptions: { requestContext: plan('free') } }).generate('Go.')
    expect(seen).toEqual([{}, { plan: 'free' }])
  })

  it('is checked by requestContextSchema before anything is asked', async () => {
    const model = scriptedModel(['Hi.'])
    const agent = new Agent({ id: 'a', model, requestContextSchema: z.object({ plan: z.enum(['free', 'paid']) }) })
    expect(await rejection(agent.generate('Go.', { requestContext: plan('gold') }))).toMatchObject({ code: 'invalid_request_context', message: expect.stringContaining('plan') })
    expect(await rejection(agent.stream('Go.'))).toMatchObject({ code: 'invalid_request_context' })
    expect(model.callCount).toBe(0)
    expect((await agent.generate('Go.', { requestContext: plan('free') })).text).toBe('Hi.')
  })

  it('reaches no model when a function of it fails', async () => {
    const model = scriptedModel(['Hi.'])
    const agent = new Agent({ id: 'a', model, instructions: () => Promise.reject(new Error('no database')) })
    expect(await rejection(agent.generate('Go.'))).toMatchObject({ message: 'no database' })
    expect(model.callCount).toBe(0)
  })
})

function expectNever(): never {
  throw new Error('unknown plan')
}

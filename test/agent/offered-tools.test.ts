import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel } from '../../src/testing/index.ts'

const tool = (id: string) => createTool({ id, execute: async () => `${id} ran` })
const tools = { zeta: tool('zeta'), alpha: tool('alpha'), beta: tool('beta') }
const names = (model: { calls: ReadonlyArray<{ tools?: ReadonlyArray<{ name: string }> }> }) => model.calls.map((call) => call.tools?.map(({ name }) => name))

describe('the tools a model is offered', () => {
  it('stand in an order that does not depend on how they were written down', async () => {
    const model = scriptedModel(['Hi.'])
    await new Agent({ id: 'a', model, tools }).generate('Go.')
    expect(names(model)).toEqual([['alpha', 'beta', 'zeta']])
  })

  it('[G1.7] are those that there are: what is undefined is left out, wherever tools come from', async () => {
    const { alpha, beta, zeta } = tools
    for (const there of [true, false]) {
      const model = scriptedModel([{ toolCalls: [{ toolName: 'alpha' }] }, 'Hi.'])
      const agent = new Agent({ id: 'a', model, tools: async () => ({ alpha: there ? alpha : undefined, zeta }) })
      const { toolResults } = await agent.generate('Go.', {
        tools: there ? { beta } : {},
        toolsets: { more: { gamma: there ? tool('gamma') : undefined }, none: there ? {} : undefined },
        clientTools: { delta: there ? createTool({ id: 'delta' }) : undefined },
      })
      expect(names(model)[0]).toEqual(there ? ['alpha', 'beta', 'delta', 'gamma', 'zeta'] : ['zeta'])
      expect(toolResults).toMatchObject([there ? { result: 'alpha ran' } : { isError: true, result: "There is no tool 'alpha'. Available: zeta." }])
    }
    const without = scriptedModel(['Hi.'])
    await new Agent({ id: 'a', model: without, tools: { alpha: undefined } }).generate('Go.')
    expect(without.calls[0]).not.toHaveProperty('tools')
  })

  it('leave their names to others where they are undefined', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'alpha' }] }, 'Hi.'])
    const { toolResults } = await new Agent({ id: 'a', model, tools: { alpha: undefined } }).generate('Go.', { tools: { alpha: tools.alpha } })
    expect(toolResults).toMatchObject([{ result: 'alpha ran' }])
  })

  it('are those of activeTools, and a call to another one is an error the model reads', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'zeta' }, { toolName: 'alpha' }] }, 'Sorry.'])
    const result = await new Agent({ id: 'a', model, tools }).generate('Go.', { activeTools: ['alpha', 'beta'] })
    expect(names(model)).toEqual([['alpha', 'beta'], ['alpha', 'beta']])
    expect(model.calls[1]?.prompt.at(-1)).toMatchObject({
      content: [
        { toolName: 'zeta', output: { type: 'error-text', value: "There is no tool 'zeta'. Available: alpha, beta." } },
        { toolName: 'alpha', output: { type: 'text', value: 'alpha ran' } },
      ],
    })
    expect(result.text).toBe('Sorry.')
  })

  it('are none with an empty activeTools, and then there is no tool choice either', async () => {
    const model = scriptedModel(['Hi.'])
    await new Agent({ id: 'a', model, tools }).generate('Go.', { activeTools: [], toolChoice: 'required' })
    expect(model.calls[0]).not.toHaveProperty('tools')
    expect(model.calls[0]).not.toHaveProperty('toolChoice')
  })

  it.each([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'required' }],
    [{ type: 'tool', toolName: 'beta' }, { type: 'tool', toolName: 'beta' }],
  ] as const)('come with the tool choice %j', async (toolChoice, sent) => {
    const model = scriptedModel(['Hi.'])
    await new Agent({ id: 'a', model, tools }).generate('Go.', { toolChoice })
    expect(model.calls[0]?.toolChoice).toEqual(sent)
  })

  it('are described with examples, strictness and provider options', async () => {
    const model = scriptedModel(['Hi.'])
    const exact = createTool({
      id: 'exact',
      strict: true,
      inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
      inputExamples: [{ input: { a: 1 } }],
      providerOptions: { anthropic: { deferLoading: true } },
      execute: async () => null,
    })
    await new Agent({ id: 'a', model, tools: { exact } }).generate('Go.')
    expect(model.calls[0]?.tools).toEqual([{
      type: 'function',
      name: 'exact',
      strict: true,
      inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
      inputExamples: [{ input: { a: 1 } }],
      providerOptions: { anthropic: { deferLoading: true } },
    }])
  })
})

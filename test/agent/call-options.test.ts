import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import { scriptedModel, type ScriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, rejection, typesOf } from './asking.ts'

const tool = (id: string) => createTool({ id, execute: async () => `${id} ran` })
const systemOf = (model: ScriptedModel) => model.calls[0]?.prompt.filter((message) => message.role === 'system')

describe('instructions', () => {
  const cached = { anthropic: { cacheControl: { type: 'ephemeral' } } }
  it.each([
    ['a text', 'Be kind.', [{ role: 'system', content: 'Be kind.' }]],
    ['texts', ['Be kind.', 'Be brief.'], [{ role: 'system', content: 'Be kind.' }, { role: 'system', content: 'Be brief.' }]],
    ['a system message', { role: 'system' as const, content: 'Be kind.', providerOptions: cached }, [{ role: 'system', content: 'Be kind.', providerOptions: cached }]],
    [
      'system messages',
      [{ role: 'system' as const, content: 'Be kind.' }, { role: 'system' as const, content: 'Be brief.', providerOptions: cached }],
      [{ role: 'system', content: 'Be kind.' }, { role: 'system', content: 'Be brief.', providerOptions: cached }],
    ],
  ])('[G1.7] may be %s', async (_, instructions, sent) => {
    const model = scriptedModel(['Hi.', 'Ho.'])
    await new Agent({ id: 'a', instructions, model }).generate('Go.')
    await new Agent({ id: 'a', instructions: async () => instructions, model }).generate('Go.')
    expect(model.calls.map(({ prompt }) => prompt.filter((message) => message.role === 'system'))).toEqual([sent, sent])
  })

  it('of the call stand in place of the agent\'s, and its system beside them', async () => {
    const model = scriptedModel(['Hi.'])
    await new Agent({ id: 'a', instructions: 'Own.', model }).generate('Go.', { instructions: 'Other.', system: ['More.', 'Yet more.'] })
    expect(systemOf(model)).toEqual(['Other.', 'More.', 'Yet more.'].map((content) => ({ role: 'system', content })))
  })

  it('that are none are refused by name', async () => {
    const agent = new Agent({ id: 'a', instructions: (() => ({ role: 'user', content: 'x' })) as unknown as () => string, model: scriptedModel(['Hi.']) })
    expect(await rejection(agent.generate('Go.'))).toMatchObject({ code: 'invalid_agent', message: expect.stringContaining('role "user"') })
  })
})

describe('tools of the call', () => {
  it('stand beside the agent\'s: its own, those of toolsets, and the client\'s', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'mine' }, { toolName: 'files_read' }] }, 'Done.'])
    const { toolResults } = await new Agent({ id: 'a', model, tools: { base: tool('base') } }).generate('Go.', {
      tools: { mine: tool('mine') },
      toolsets: { files: { files_read: tool('files_read') }, web: { web_get: tool('web_get') } },
      clientTools: { confirm: createTool({ id: 'confirm', inputSchema: z.object({}) }) },
    })
    expect(model.calls[0]?.tools?.map(({ name }) => name)).toEqual(['base', 'confirm', 'files_read', 'mine', 'web_get'])
    expect(toolResults.map(({ result }) => result)).toEqual(['mine ran', 'files_read ran'])
  })

  it('that have no execute end the run: the caller runs them', async () => {
    const model = scriptedModel([{ text: 'Sure?', toolCalls: [{ toolName: 'confirm', input: { q: 'go' } }, { toolName: 'base' }] }])
    const agent = new Agent({ id: 'a', model, tools: { base: tool('base') } })
    const stream = await agent.stream('Go.', { clientTools: { confirm: createTool({ id: 'confirm', inputSchema: z.object({ q: z.string() }) }) } })
    const chunks = await chunksOf(stream)
    expect(await stream.finishReason).toBe('tool-calls')
    expect(await stream.toolCalls).toMatchObject([{ toolName: 'confirm', args: { q: 'go' } }, { toolName: 'base' }])
    expect(await stream.toolResults).toMatchObject([{ toolName: 'base', result: 'base ran' }])
    expect(typesOf(chunks).slice(-2)).toEqual(['step-finish', 'finish'])
    expect(of(chunks, 'finish')[0]?.payload.stepResult.reason).toBe('tool-calls')
  })

  it('come back as messages with a result, and the run goes on from there', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'confirm', input: { q: 'go' } }] }, 'Going.'])
    const agent = new Agent({ id: 'a', model })
    const clientTools = { confirm: createTool({ id: 'confirm', inputSchema: z.object({ q: z.string() }) }) }
    const first = await agent.generate('Go.', { clientTools })
    const answered = first.messages.map((message) => ({
      ...message,
      content: {
        ...message.content,
        parts: message.content.parts.map((part) =>
          part.type === 'tool-invocation' ? { ...part, toolInvocation: { ...part.toolInvocation, state: 'result' as const, result: 'yes' } } : part),
      },
    }))
    expect((await agent.generate([{ role: 'user', content: 'Go.' }, ...answered], { clientTools })).text).toBe('Going.')
    expect(model.calls[1]?.prompt.slice(1)).toMatchObject([
      { role: 'assistant', content: [{ type: 'tool-call', toolName: 'confirm' }] },
      { role: 'tool', content: [{ toolName: 'confirm', output: { type: 'text', value: 'yes' } }] },
    ])
  })

  it('that have no result are closed in the next prompt, as providers require', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'confirm', input: { q: 'go' } }] }, 'Well.'])
    const agent = new Agent({ id: 'a', model })
    const clientTools = { confirm: createTool({ id: 'confirm', inputSchema: z.object({ q: z.string() }) }) }
    const first = await agent.generate('Go.', { clientTools })
    await agent.generate([{ role: 'user', content: 'Go.' }, ...first.messages, { role: 'user', content: 'Never mind.' }], { clientTools })
    expect(model.calls[1]?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user'])
    expect(model.calls[1]?.prompt[2]).toMatchObject({ content: [{ output: { type: 'error-text', value: expect.stringContaining('interrupted') } }] })
  })
})

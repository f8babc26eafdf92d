import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { toUIMessages } from '../../src/message/ui/to-ui.ts'
import { createTool } from '../../src/run/tools/tool.ts'
import type { ToolTransform, TransformContext } from '../../src/run/tools/payloads.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed } from './asking.ts'

const card = '4111-1111'
const secret = 'token-77'

const charging = () => scriptedModel([{ toolCalls: [{ toolName: 'charge', input: { card } }] }, 'Charged.'])

function charge(transform?: ToolTransform, execute: () => unknown = async () => ({ secret })) {
  return createTool({ id: 'charge', inputSchema: z.object({ card: z.string() }), execute, ...(transform ? { transform } : {}) })
}

/** Input and output hidden from everyone. */
const hidden: ToolTransform = {
  display: { input: () => ({ card: '****' }), output: () => ({ hidden: true }), error: () => 'It failed.' },
  transcript: { input: () => ({ card: 'kept' }), output: () => ({ kept: true }), error: () => 'It failed then.' },
}

describe('transform of a tool', () => {
  it('[G1.10] hides input and output from streams and transcripts, and never from the model', async () => {
    const model = charging()
    const stream = await new Agent({ id: 'a', model, tools: { charge: charge(hidden) } }).stream('Go.')
    const shown = JSON.stringify(await chunksOf(stream))
    expect(shown).not.toContain(card)
    expect(shown).not.toContain(secret)
    expect(of(await chunksOf(stream), 'tool-call')[0]?.payload.args).toEqual({ card: '****' })
    expect(of(await chunksOf(stream), 'tool-result')[0]?.payload).toMatchObject({ args: { card: '****' }, result: { hidden: true } })
    expect(of(await chunksOf(stream), 'step-finish')[0]?.payload.output.toolCalls).toMatchObject([{ args: { card: '****' } }])

    const transcript = JSON.stringify(toUIMessages(await stream.messages))
    expect(transcript).not.toContain(card)
    expect(transcript).not.toContain(secret)
    expect(transcript).toContain('{"card":"kept"}')
    expect(transcript).toContain('{"kept":true}')

    expect(model.calls[1]?.prompt.slice(1)).toMatchObject([
      { content: [{ input: { card } }] },
      { content: [{ output: { type: 'json', value: { secret } } }] },
    ])
    expect((await stream.toolCalls)[0]?.args).toEqual({ card })
  })

  it('[G1.10] hides the text of errors, and input that is quoted in them', async () => {
    const fails = charge(hidden, async () => {
      throw new Error(`card ${card} refused`)
    })
    const stream = await new Agent({ id: 'a', model: charging(), tools: { charge: fails } }).stream('Go.')
    expect(JSON.stringify(await chunksOf(stream))).not.toContain(card)
    expect(of(await chunksOf(stream), 'tool-error')[0]?.payload.error.message).toBe('It failed.')
    expect(JSON.stringify(toUIMessages(await stream.messages))).not.toContain(card)

    const inputOnly = charge({ display: { input: () => '****' }, transcript: { input: () => '****' } })
    const malformed = scriptedModel([{ toolCalls: [{ toolName: 'charge', inputText: `"${card}` }] }, { toolCalls: [{ toolName: 'charge', inputText: `${card}!` }] }, 'Sorry.'])
    const second = await new Agent({ id: 'a', model: malformed, tools: { charge: inputOnly } }).stream('Go.')
    expect(JSON.stringify(await chunksOf(second))).not.toContain(card)
    expect(JSON.stringify(toUIMessages(await second.messages))).not.toContain(card)
  })

  it('[G1.10] hides input of a call that waits, in both ways to wait', async () => {
    const waits = createTool({ id: 'charge', requireApproval: true, execute: async () => 1, transform: { display: { input: () => '****' }, transcript: { input: () => '****' } } })
    const approval = await new Agent({ id: 'a', model: charging(), tools: { charge: waits } }).stream('Go.')
    const asked = await chunksOf(approval)
    expect(of(asked, 'tool-call-approval')[0]?.payload.args).toBe('****')
    expect(JSON.stringify(asked)).not.toContain(card)
    expect(JSON.stringify(toUIMessages(await approval.messages))).not.toContain(card)
    expect((await approval.suspended)[0]?.args).toEqual({ card })

    const suspends = createTool({
      id: 'charge',
      execute: async (_, { suspend }) => suspend({ secret }),
      transform: { display: { input: () => '****', suspend: () => 'a question' } },
    })
    const suspension = await chunksOf(await new Agent({ id: 'a', model: charging(), tools: { charge: suspends } }).stream('Go.'))
    expect(of(suspension, 'tool-call-suspended')[0]?.payload).toMatchObject({ args: '****', suspendPayload: 'a question' })
    expect(JSON.stringify(suspension)).not.toContain(secret)
  })

  it('has a rule of its own for approvals', async () => {
    const tool = createTool({ id: 'charge', requireApproval: true, execute: async () => 1, transform: { display: { input: () => '****', approval: ({ input }) => ({ ends: String((input as { card: string }).card.slice(-4)) }) } } })
    const chunks = await chunksOf(await new Agent({ id: 'a', model: charging(), tools: { charge: tool } }).stream('Go.'))
    expect(of(chunks, 'tool-call-approval')[0]?.payload.args).toEqual({ ends: '1111' })
  })

  it('[G1.10] drops the pieces of hidden input, unless a rule says how to show them', async () => {
    const dropped = await chunksOf(await new Agent({ id: 'a', model: charging(), tools: { charge: charge(hidden) } }).stream('Go.'))
    expect(of(dropped, 'tool-call-delta')).toEqual([])
    const masked = charge({ display: { ...hidden.display, inputDelta: ({ inputTextDelta = '' }) => '*'.repeat(inputTextDelta.length) } })
    const shown = of(await chunksOf(await new Agent({ id: 'a', model: charging(), tools: { charge: masked } }).stream('Go.')), 'tool-call-delta')
    expect(shown.map((chunk) => chunk.payload.argsTextDelta).join('')).toMatch(/^\*+$/)
    const outputOnly = charge({ display: { output: () => null } })
    expect(of(await chunksOf(await new Agent({ id: 'a', model: charging(), tools: { charge: outputOnly } }).stream('Go.')), 'tool-call-delta').length).toBeGreaterThan(0)
  })

  it('[G1.10] covers preliminary results', async () => {
    const pieces = createTool({
      id: 'charge',
      async *execute() {
        yield { secret }
        yield { secret, done: true }
      },
      transform: hidden,
    })
    const chunks = await chunksOf(await new Agent({ id: 'a', model: charging(), tools: { charge: pieces } }).stream('Go.'))
    expect(of(chunks, 'tool-result')).toHaveLength(2)
    expect(JSON.stringify(chunks)).not.toContain(secret)
  })

  it('[G1.10] withholds a payload when its rule throws', async () => {
    const { heed, logged } = recordedHeed()
    const broken = () => {
      throw new Error('rule broke')
    }
    const tool = charge({ display: { input: broken, output: broken }, transcript: { output: () => Promise.reject(new Error('rule broke')) } })
    const stream = await new Agent({ id: 'a', heed, model: charging(), tools: { charge: tool } }).stream('Go.')
    expect(of(await chunksOf(stream), 'tool-result')[0]?.payload).toMatchObject({ args: '[withheld]', result: '[withheld]' })
    expect(JSON.stringify(toUIMessages(await stream.messages))).not.toContain(secret)
    expect(logged).toContain("transform of tool 'charge' failed; its payload is withheld")
    expect((await stream.result).text).toBe('Charged.')
  })

  it('shows what a rule leaves undefined', async () => {
    const stream = await new Agent({ id: 'a', model: charging(), tools: { charge: charge({ display: { input: () => undefined } }) } }).stream('Go.')
    expect(of(await chunksOf(stream), 'tool-call')[0]?.payload.args).toEqual({ card })
  })
})

describe('transform of an agent', () => {
  it('[G1.10] is for all its tools, after their own rules, and receives what it transforms', async () => {
    const seen: TransformContext[] = []
    const transform = {
      transformToolPayload: (context: TransformContext) => {
        seen.push(context)
        return context.phase === 'input-delta' ? undefined : 'policy'
      },
    }
    const own = charge({ display: { input: () => 'own' } })
    const other = createTool({ id: 'other', execute: async () => ({ secret }) })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'charge', input: { card } }, { toolName: 'other', input: { card } }] }, 'Done.'])
    const stream = await new Agent({ id: 'a', model, tools: { charge: own, other }, transform }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(of(chunks, 'tool-call').map((chunk) => chunk.payload.args)).toEqual(['own', 'policy'])
    expect(of(chunks, 'tool-result').map((chunk) => chunk.payload.result)).toEqual(['policy', 'policy'])
    expect(of(chunks, 'tool-call-delta')).toEqual([])
    expect(JSON.stringify(chunks)).not.toMatch(/4111|token-77/)
    expect(JSON.stringify(toUIMessages(await stream.messages))).not.toMatch(/4111|token-77/)
    expect(seen).toContainEqual({ target: 'display', phase: 'output-available', toolName: 'other', toolCallId: 'call_0_1', input: { card }, output: { secret } })
    expect(new Set(seen.map((context) => context.target))).toEqual(new Set(['display', 'transcript']))
  })

  it('may show pieces of input in its own way', async () => {
    const transform = { transformToolPayload: ({ phase }: TransformContext) => (phase === 'input-delta' ? '.' : undefined) }
    const chunks = await chunksOf(await new Agent({ id: 'a', model: charging(), tools: { charge: charge() }, transform }).stream('Go.'))
    expect(new Set(of(chunks, 'tool-call-delta').map((chunk) => chunk.payload.argsTextDelta))).toEqual(new Set(['.']))
  })

  it('covers only the targets it names', async () => {
    const transform = { targets: ['transcript' as const], transformToolPayload: () => 'policy' }
    const stream = await new Agent({ id: 'a', model: charging(), tools: { charge: charge() }, transform }).stream('Go.')
    expect(JSON.stringify(await chunksOf(stream))).toContain(secret)
    expect(JSON.stringify(toUIMessages(await stream.messages))).not.toContain(secret)
  })

  it('gives way to the one of a call', async () => {
    const agent = new Agent({ id: 'a', model: charging(), tools: { charge: charge() }, transform: { transformToolPayload: () => 'agent' } })
    const chunks = await chunksOf(await agent.stream('Go.', { transform: { transformToolPayload: () => 'call' } }))
    expect(of(chunks, 'tool-result')[0]?.payload.result).toBe('call')
  })

  it('[G1.10] covers tools that the provider runs', async () => {
    const call = { toolCallId: 'p1', toolName: 'web_search' }
    const model = scriptedModel([{
      parts: [
        { type: 'tool-call', ...call, input: `{"q":"${card}"}`, providerExecuted: true },
        { type: 'tool-result', ...call, result: { secret } },
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Found.' },
        { type: 'text-end', id: 't' },
        {
          type: 'finish',
          finishReason: { unified: 'stop', raw: 'stop' },
          usage: { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } },
        },
      ],
    }])
    const stream = await new Agent({ id: 'a', model, transform: { transformToolPayload: () => 'policy' } }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(of(chunks, 'tool-result')).toMatchObject([{ payload: { args: 'policy', result: 'policy', providerExecuted: true } }])
    expect(JSON.stringify(chunks)).not.toMatch(/4111|token-77/)
    expect(JSON.stringify(toUIMessages(await stream.messages))).not.toMatch(/4111|token-77/)
  })

  it('[G1.10] is not asked about input that is no JSON: nothing is shown of it', async () => {
    const malformed = () => scriptedModel([{ toolCalls: [{ toolName: 'charge', inputText: `{"card":"${card}` }] }, 'Sorry.'])
    const redact = ({ input }: TransformContext) => ({ ...(input as object), card: '****' })
    const own: ToolTransform = { display: { input: redact }, transcript: { input: redact } }
    for (const agent of [
      new Agent({ id: 'a', model: malformed(), tools: { charge: charge(own) } }),
      new Agent({ id: 'a', model: malformed(), tools: { charge: charge() }, transform: { transformToolPayload: (context) => (context.phase === 'input-available' ? redact(context) : undefined) } }),
    ]) {
      const stream = await agent.stream('Go.')
      const chunks = await chunksOf(stream)
      expect(JSON.stringify(chunks)).not.toContain(card)
      expect(of(chunks, 'tool-call')[0]?.payload.args).toBe('[withheld]')
      expect(JSON.stringify(toUIMessages(await stream.messages))).not.toContain(card)
    }
  })

  it('[G1.10] that makes something that is no JSON shows nothing', async () => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const rule = () => cyclic as never
    const stream = await new Agent({ id: 'a', heed: recordedHeed().heed, model: charging(), tools: { charge: charge({ display: { input: rule, output: rule }, transcript: { input: rule, output: rule } }) } }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(of(chunks, 'tool-result')[0]?.payload).toMatchObject({ args: '[withheld]', result: '[withheld]' })
    expect(JSON.stringify(await stream.messages)).toContain('[withheld]')
  })

  it('[P1.2] may make what is shown out of what it is given: the model sees the original', async () => {
    const model = charging()
    const rule = ({ input, output }: TransformContext) => {
      for (const value of [input, output]) if (value) for (const key of Object.keys(value)) delete (value as Record<string, unknown>)[key]
      return {}
    }
    await new Agent({ id: 'a', model, tools: { charge: charge() }, transform: { transformToolPayload: rule } }).generate('Go.')
    expect(model.calls[1]?.prompt.slice(1)).toMatchObject([{ content: [{ input: { card } }] }, { content: [{ output: { value: { secret } } }] }])
  })
})

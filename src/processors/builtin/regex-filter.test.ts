import { describe, expect, it } from 'vitest'
import { chunksOf, of, typesOf } from '../../../test/agent/asking.ts'
import { asked, inputArgs, refusal, resultArgs, said } from '../../../test/processors/asked.ts'
import { Agent } from '../../agent/agent.ts'
import { Heed } from '../../heed/heed.ts'
import type { Message } from '../../message/message.ts'
import type { Chunk } from '../../message/chunk.ts'
import { createTool } from '../../run/tools/tool.ts'
import { InMemoryStore } from '../../store/sqlite/in-memory.ts'
import { scriptedModel, type ScriptedModel } from '../../testing/index.ts'
import type { Processor } from '../processor.ts'
import { RegexFilter, type RegexFilterOptions } from './regex-filter.ts'

const key = 'AKIAIOSFODNN7EXAMPLE'
const textIn = (messages: readonly Message[] | undefined) => messages?.flatMap(({ content }) => content.parts.map((part) => (part.type === 'text' ? part.text : part.type === 'reasoning' ? part.reasoning : '')))
const filter = (options: RegexFilterOptions = {}) => new RegexFilter({ presets: ['secrets', 'pii'], strategy: 'redact', ...options })
const shownText = (chunks: readonly Chunk[]) => of(chunks, 'text-delta').map(({ payload }) => payload.text).join('')

describe('RegexFilter on input', () => {
  it('redacts every text of every message, and keeps the rest', () => {
    const messages = [said('u1', 'user', `key ${key}`, { type: 'file', data: 'AAAA', mimeType: 'image/png' }, 'mail a@b.ch'), said('u2', 'user', 'fine')]
    messages[1]!.content.content = `also ${key}`
    const made = filter().processInput(inputArgs(messages))
    expect(textIn(made)).toEqual(['key [AWS-ACCESS-KEY-ID]', '', 'mail [EMAIL]', 'fine'])
    expect(made?.[1]?.content.content).toBe('also [AWS-ACCESS-KEY-ID]')
    expect(textIn(messages)?.[0]).toContain(key)
  })

  it('rejects with the name of the rule, without the match', async () => {
    const refused = await refusal(() => new RegexFilter({ presets: ['secrets', 'pii'] }).processInput(inputArgs([said('u1', 'user', `${key} a@b.ch`)])))
    expect(refused).toMatchObject({ reason: 'Rejected by regex-filter: the input has aws-access-key-id, email', metadata: { phase: 'input', rules: ['aws-access-key-id', 'email'] } })
    expect(JSON.stringify(refused)).not.toContain(key)
  })

  it('warns, and changes nothing', () => {
    const args = inputArgs([said('u1', 'user', key)])
    expect(filter({ strategy: 'warn' }).processInput(args)).toBeUndefined()
    expect(args.logged).toEqual(['regex-filter found matches in the input {"runId":"run-1","rules":["aws-access-key-id"]}'])
  })

  it('leaves clean input unchanged, and all input outside of its phases', () => {
    expect(filter({ phases: ['output'] }).processInput(inputArgs([said('u1', 'user', key)]))).toBeUndefined()
    expect(filter().processInput(inputArgs([said('u1', 'user', 'clean')]))).toBeUndefined()
  })

  it('sees input that enters a running loop', async () => {
    const target = { threadId: 't1', resourceId: 'r1' }
    const model = scriptedModel([{ toolCalls: [{ toolName: 'wait' }] }, 'Done.'])
    const wait = createTool({ id: 'wait', execute: async () => (await agent.sendMessage(`Use ${key}.`, target).stored, 'ok') })
    const agent: Agent = new Agent({ id: 'a', model, tools: { wait }, inputProcessors: [filter()] })
    const heed = new Heed({ agents: { a: agent }, storage: new InMemoryStore() })
    await agent.generate('Go.', { memory: { thread: 't1', resource: 'r1' } })
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain('Use [AWS-ACCESS-KEY-ID].')
    const { messages } = await (await agent.getMemory()).recall(target)
    expect(JSON.stringify(messages)).toContain('Use [AWS-ACCESS-KEY-ID].')
    expect(JSON.stringify(messages)).not.toContain(key)
    await heed.close()
  })
})

describe('RegexFilter on output', () => {
  const stream = async (model: ScriptedModel, options: RegexFilterOptions = {}, more: Processor[] = []) => {
    const running = await new Agent({ id: 'a', model, outputProcessors: [filter(options), ...more] }).stream('Go.', { includeRawChunks: true })
    const chunks = await chunksOf(running)
    return { chunks, result: await running.result }
  }

  it('redacts matches that are split over chunks, in the stream and in history', async () => {
    const { chunks, result } = await stream(scriptedModel([{ text: ['The key is AK', 'IAIOSFOD', 'NN7EXAMPLE', ', and ann@ma', 'il.example.com', ' wrote it'] }]))
    expect(shownText(chunks)).toBe('The key is [AWS-ACCESS-KEY-ID], and [EMAIL] wrote it')
    expect(result.text).toBe('The key is [AWS-ACCESS-KEY-ID], and [EMAIL] wrote it')
    for (const part of [key, 'IAIOSFOD', 'ann@ma']) expect(JSON.stringify([chunks, result])).not.toContain(part)
  })

  it('publishes all of a text without matches', async () => {
    const { chunks, result } = await stream(scriptedModel([{ text: ['Call me at 1', '2 or ', 'so, Ann'] }]))
    expect([shownText(chunks), result.text]).toEqual(['Call me at 12 or so, Ann', 'Call me at 12 or so, Ann'])
    expect(typesOf(chunks).filter((type) => type.startsWith('text'))).toEqual(['text-start', ...Array.from({ length: 4 }, () => 'text-delta'), 'text-end'])
    expect(result.messages[0]?.content.parts).toEqual([{ type: 'step-start' }, { type: 'text', text: 'Call me at 12 or so, Ann' }])
  })

  it('publishes and stores the held text when the stream is cut', async () => {
    const stop = new AbortController()
    const model = scriptedModel([{ text: ['Ask for ', 'Ann'], hang: true }])
    const running = await new Agent({ id: 'a', model, outputProcessors: [filter()] }).stream('Go.', {
      abortSignal: stop.signal,
      onChunk: (chunk) => void (chunk.type === 'text-delta' && stop.abort()),
    })
    const chunks = await chunksOf(running)
    expect([shownText(chunks), typesOf(chunks).slice(-3)]).toEqual([expect.stringMatching(/^Ask for (Ann)?$/), ['text-end', 'step-finish', 'abort']])
    expect((await running.result).text).toBe(shownText(chunks))
  })

  it('keeps interleaved blocks apart, and reasoning from text', async () => {
    const model = scriptedModel([{
      parts: [
        { type: 'reasoning-start', id: '1' }, { type: 'text-start', id: '1' }, { type: 'text-start', id: '2' },
        { type: 'reasoning-delta', id: '1', delta: 'AKIAIOSF' }, { type: 'text-delta', id: '1', delta: 'AKIAIOSF' }, { type: 'text-delta', id: '2', delta: 'plain' },
        { type: 'text-delta', id: '1', delta: 'ODNN7EXAMPLE ' }, { type: 'reasoning-delta', id: '1', delta: 'ODNN7EXAMPLE ' }, { type: 'text-delta', id: '2', delta: ' words ' },
        { type: 'text-end', id: '1' }, { type: 'reasoning-end', id: '1', providerMetadata: { anthropic: { signature: 'sig' } } }, { type: 'text-end', id: '2' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: { inputTokens: {}, outputTokens: {} } as never },
      ],
    }])
    const { result, chunks } = await stream(model)
    expect(textIn(result.messages)).toEqual(['', '[AWS-ACCESS-KEY-ID] ', '[AWS-ACCESS-KEY-ID] ', 'plain words '])
    expect(typesOf(chunks).filter((type) => type.endsWith('-end'))).toEqual(['text-end', 'reasoning-end', 'text-end'])
    // A provider would reject the signature of another text.
    expect(JSON.stringify(result.messages)).not.toContain('signature')
  })

  it('keeps the signature of unchanged reasoning', async () => {
    const model = scriptedModel([{
      parts: [
        { type: 'reasoning-start', id: '1' }, { type: 'reasoning-delta', id: '1', delta: 'Hm. ' },
        { type: 'reasoning-end', id: '1', providerMetadata: { anthropic: { signature: 'sig' } } },
        { type: 'text-start', id: '2' }, { type: 'text-delta', id: '2', delta: `${key}. ` }, { type: 'text-end', id: '2' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: { inputTokens: {}, outputTokens: {} } as never },
      ],
    }])
    const { result } = await stream(model)
    expect(result.messages[0]?.content.parts[1]).toMatchObject({ reasoning: 'Hm. ', providerMetadata: { anthropic: { signature: 'sig' } } })
  })

  it('rejects before any part of a match is published', async () => {
    const { chunks, result } = await stream(scriptedModel([{ text: ['The key is AK', 'IAIOSFOD', 'NN7EXAMPLE', ', see.'] }]), { strategy: 'block' })
    expect(shownText(chunks)).toBe('The key is ')
    expect(result).toMatchObject({ text: '', messages: [], finishReason: 'tripwire', tripwire: { processorId: 'regex-filter', metadata: { phase: 'output', rules: ['aws-access-key-id'] } } })
    expect(JSON.stringify([chunks, result])).not.toContain('IAIOSFOD')
  })

  it.each([
    [['VISA4111 ', '1111 ', '1111 ', '1111 ok'], 'VISA', 'VISA[CREDIT-CARD] ok'],
    [['A ------BE', 'GIN RSA PRIVATE KEY-----\nMIIabc\n', '-----END RSA PRIVATE KEY----- ok'], 'A -', 'A -[PRIVATE-KEY] ok'],
  ])('[G2.31] publishes no part of a match that follows other characters: %j', async (text, before, redacted) => {
    const blocked = await stream(scriptedModel([{ text }]), { strategy: 'block' })
    expect(['', before]).toContain(shownText(blocked.chunks))
    expect(blocked.result.tripwire?.processorId).toBe('regex-filter')
    const { chunks, result } = await stream(scriptedModel([{ text }]))
    expect([shownText(chunks), result.text]).toEqual([redacted, redacted])
  })

  it('rejects output that ends with a match', async () => {
    const { chunks, result } = await stream(scriptedModel([{ text: ['It is AK', key.slice(2)] }]), { strategy: 'block' })
    expect([shownText(chunks), result.tripwire?.processorId]).toEqual(['It is ', 'regex-filter'])
  })

  it('drops raw chunks of the provider, which contain the unfiltered text', async () => {
    const model = () => scriptedModel([{
      parts: [
        { type: 'raw', rawValue: { delta: key } }, { type: 'text-start', id: '1' }, { type: 'text-delta', id: '1', delta: 'Hi. ' }, { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: { inputTokens: {}, outputTokens: {} } as never },
      ],
    }])
    expect(of((await stream(model())).chunks, 'raw')).toEqual([])
    expect(of((await stream(model(), { strategy: 'warn' })).chunks, 'raw')).toHaveLength(1)
  })

  it('with `warn` leaves the stream unchanged, and logs once for each step', async () => {
    const logged: string[] = []
    const log = (message: string) => void logged.push(message)
    const model = scriptedModel([{ text: `First ${key}.`, toolCalls: [{ toolName: 'look' }] }, `Then ${key}.`])
    const look = createTool({ id: 'look', execute: async () => 'ok' })
    const heed = new Heed({ logger: { debug: log, info: log, warn: log, error: log } })
    const running = await new Agent({ id: 'a', model, heed, tools: { look }, outputProcessors: [filter({ strategy: 'warn' })] }).stream('Go.')
    expect(shownText(await chunksOf(running))).toBe(`First ${key}.Then ${key}.`)
    expect(logged).toEqual(['regex-filter found matches in the output', 'regex-filter found matches in the output'])
  })

  it('checks the output after the changes of other processors', async () => {
    const args = () => resultArgs([said('r1', 'assistant', `It is ${key}.`)])
    expect(textIn(filter().processOutputResult(args()))).toEqual(['It is [AWS-ACCESS-KEY-ID].'])
    expect(await refusal(() => filter({ strategy: 'block' }).processOutputResult(args()))).toMatchObject({ metadata: { phase: 'output' } })
    expect(filter({ phases: ['input'] }).processOutputResult(args())).toBeUndefined()
    const step = { ...args(), text: '', toolCalls: [{ toolCallId: 'c', toolName: 'look', args: {} }], stepNumber: 0, steps: [], finishReason: 'tool-calls' as const, usage: undefined as never }
    expect(textIn(filter().processOutputStep(step))).toEqual(['It is [AWS-ACCESS-KEY-ID].'])
    expect(filter().processOutputStep({ ...step, toolCalls: [] })).toBeUndefined()
  })

  it('has no stream hook where it does not filter the stream', () => {
    expect(filter({ phases: ['input'] }).processOutputStream).toBeUndefined()
    expect(filter({ strategy: 'warn' }).processOutputStream).toBeUndefined()
  })

  it('keeps the held text of two filters apart', async () => {
    const { result } = await stream(
      scriptedModel([{ text: ['The key is AK', 'IAIOSFODNN7EXAMPLE', ' of ann@ma', 'il.example.com', ', ok'] }]), { presets: ['secrets'] }, [filter({ presets: ['pii'] })],
    )
    expect(result.text).toBe('The key is [AWS-ACCESS-KEY-ID] of [EMAIL], ok')
  })

  it('publishes the held text before the block ends', () => {
    const emitted: Chunk[] = []
    const processor = filter()
    const emit = (chunk: Chunk) => void emitted.push(chunk)
    const see = (part: Chunk) => {
      const args = { ...context, part, streamParts: [], emit }
      return processor.processOutputStream?.(args)
    }
    const context = asked()
    const chunk = { runId: 'run-1', from: 'AGENT' } as const
    expect(see({ ...chunk, type: 'text-delta', payload: { id: '1', text: 'so, Ann' } })).toMatchObject({ payload: { text: 'so, ' } })
    const end: Chunk = { ...chunk, type: 'text-end', payload: { id: '1', providerMetadata: { p: { a: 1 } } } }
    expect(see(end)).toBe(end)
    expect(emitted).toEqual([{ ...chunk, type: 'text-delta', payload: { id: '1', text: 'Ann' } }])
  })
})

describe('RegexFilter takes', () => {
  it('rules beside presets', () => {
    const rules = [{ name: 'ticket', pattern: /T-\d+/, replacement: '(ticket)' }]
    expect(textIn(filter({ rules }).processInput(inputArgs([said('u1', 'user', `T-12 ${key}`)])))).toEqual(['(ticket) [AWS-ACCESS-KEY-ID]'])
  })

  it.each<[string, RegexFilterOptions, RegExp]>([
    ['no rules', { presets: [] }, /has no rules/],
    ['an unknown preset', { presets: ['passwords' as 'pii'] }, /secrets, pii, urls/],
    ['a pattern as text', { rules: [{ name: 'x', pattern: '(a+)+$' as unknown as RegExp }] }, /an untrusted pattern can block the process/],
    ['something else as a pattern', { rules: [{ name: 'x', pattern: {} as RegExp }] }, /needs a RegExp/],
    ['an empty replacement', { rules: [{ name: 'x', pattern: /x/, replacement: '' }] }, /not empty/],
    ['an unknown strategy', { presets: ['pii'], strategy: 'mask' as 'redact' }, /block, redact, warn/],
    ['an unknown phase', { presets: ['pii'], phases: ['tools' as 'input'] }, /input, output/],
    ['a holdBack of 0', { presets: ['pii'], holdBack: 0 }, /holdBack|above 0/],
  ])('not %s', (_, options, message) => {
    expect(() => new RegexFilter(options)).toThrow(expect.objectContaining({ code: 'invalid_argument', message: expect.stringMatching(message) }))
  })
})

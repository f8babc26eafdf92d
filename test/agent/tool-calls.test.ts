import { jsonSchema } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent } from '../../src/agent/agent.ts'
import { RequestContext } from '../../src/run/request-context.ts'
import { createTool, type ToolContext } from '../../src/run/tools/tool.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { chunksOf, of, recordedHeed, refuseStrayRejections, thrownBy, turn, typesOf } from './asking.ts'

const call = (toolName: string, input: unknown = {}) => ({ toolCalls: [{ toolName, input }] })

describe('a tool', () => {
  refuseStrayRejections()

  it('[G1.3] is not run with bad input: the model reads what is wrong and may correct it', async () => {
    const inputs: unknown[] = []
    const add = createTool({
      id: 'add',
      inputSchema: z.object({ a: z.number(), b: z.number().default(1) }),
      execute: async (input) => {
        inputs.push(input)
        return input.a + input.b
      },
    })
    const model = scriptedModel([call('add', { a: 'two' }), call('add', { a: 2 }), 'Three.'])
    const stream = await new Agent({ id: 'a', model, tools: { add } }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(inputs).toEqual([{ a: 2, b: 1 }])
    expect(of(chunks, 'tool-error')).toMatchObject([{ payload: { toolName: 'add', args: { a: 'two' }, error: { message: expect.stringContaining('a: ') } } }])
    expect(model.calls[1]?.prompt.at(-1)).toMatchObject({
      role: 'tool',
      content: [{ output: { type: 'error-text', value: expect.stringMatching(/^The input of add is not valid: a: .*Correct it and call the tool again\.$/) } }],
    })
    // What the model wrote stays as it wrote it.
    expect(model.calls[2]?.prompt.at(-2)).toMatchObject({ content: [{ input: { a: 2 } }] })
    expect(await stream.text).toBe('Three.')
  })

  it('[G1.3] checks plain JSON Schema too, of any draft', async () => {
    const drafts = ['http://json-schema.org/draft-07/schema#', 'https://json-schema.org/draft/2019-09/schema', 'https://json-schema.org/draft/2020-12/schema', undefined]
    for (const $schema of drafts) {
      const pair = createTool({
        id: 'pair',
        inputSchema: { ...($schema ? { $schema } : {}), type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
        execute: async () => 'ran',
      })
      const model = scriptedModel([call('pair', { n: 1.5 }), call('pair', { n: 1 }), 'Done.'])
      const { toolResults } = await new Agent({ id: 'a', model, tools: { pair } }).generate('Go.')
      expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining('n: must be integer') }, { result: 'ran' }])
    }
  })

  it('without a schema takes any input, and is described to the model without parameters', async () => {
    const model = scriptedModel([call('any', { x: [1] }), 'Done.'])
    const any = createTool({ id: 'any', execute: async (input) => input })
    const { toolResults } = await new Agent({ id: 'a', model, tools: { any } }).generate('Go.')
    expect(toolResults[0]?.result).toEqual({ x: [1] })
    expect(model.calls[0]?.tools).toMatchObject([{ inputSchema: { type: 'object', properties: {}, additionalProperties: false } }])
  })

  it('whose result does not match its outputSchema is an error the model reads', async () => {
    const model = scriptedModel([call('report'), 'Hm.'])
    const report = createTool({ id: 'report', outputSchema: z.object({ ok: z.boolean() }), execute: async () => ({ ok: 'yes' }) as unknown as { ok: boolean } })
    const { toolResults } = await new Agent({ id: 'a', model, tools: { report } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining("doesn't match its outputSchema: ok: ") }])
  })

  it('keeps what it was declared as', () => {
    const plain = createTool({ id: 'plain' })
    expect([plain.idempotent, plain.timeoutMs, plain.execute]).toEqual([false, undefined, undefined])
    expect(createTool({ id: 'safe', idempotent: true, execute: () => 'done' }).idempotent).toBe(true)
  })

  it.each([
    ['an empty id', { id: ' ' }, 'invalid_tool'],
    ['no id', {}, 'invalid_tool'],
    ['a timeout of zero', { id: 't', timeoutMs: 0 }, 'invalid_tool'],
    ['a schema that is none', { id: 't', inputSchema: 'string' }, 'invalid_schema'],
    ['an output schema that is none', { id: 't', outputSchema: { tpye: 'object' } }, 'invalid_schema'],
  ])('can\'t be made with %s', (_, config, code) => {
    expect(thrownBy(() => createTool(config as never))).toMatchObject({ name: 'HeedError', code })
  })

  it('is stopped after timeoutMs, which the model reads as its result', async () => {
    const clock = virtualClock()
    const { heed } = recordedHeed(clock)
    const reasons: unknown[] = []
    const slow = createTool({
      id: 'slow',
      timeoutMs: 5_000,
      execute: (_, { abortSignal }) => new Promise<string>(() => abortSignal.addEventListener('abort', () => reasons.push(abortSignal.reason))),
    })
    const quick = createTool({ id: 'quick', timeoutMs: 5_000, execute: async () => 'quick' })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'slow' }, { toolName: 'quick' }] }, 'Too slow.'])
    const stream = await new Agent({ id: 'a', heed, model, tools: { slow, quick } }).stream('Go.')
    await clock.advance(4_999)
    expect(model.callCount).toBe(1)
    expect(reasons).toEqual([])
    // The timer of the one that is done is gone.
    expect(clock.pending).toBe(1)
    await clock.advance(1)
    const { toolResults, text } = await stream.result
    expect(toolResults).toMatchObject([{ result: 'slow did not finish within 5000 ms.', isError: true }, { result: 'quick' }])
    expect(reasons).toMatchObject([{ code: 'tool_timeout' }])
    expect(text).toBe('Too slow.')
    expect(clock.pending).toBe(0)
  })

  it('knows the call it serves', async () => {
    const seen: ToolContext[] = []
    const look = createTool({
      id: 'look',
      execute: async (_, context) => {
        seen.push(context)
        return null
      },
    })
    const requestContext = new RequestContext({ user: 'u1' })
    await new Agent({ id: 'eye', model: scriptedModel([call('look'), 'Done.']), tools: { see: look, look } }).generate('Go.', { runId: 'run-1', requestContext })
    expect(seen[0]).toMatchObject({ toolCallId: 'call_0_0', toolName: 'look', runId: 'run-1', agentId: 'eye' })
    expect(seen[0]?.requestContext).toBe(requestContext)
    expect(seen[0]?.abortSignal.aborted).toBe(false)
    expect(seen[0]).not.toHaveProperty('threadId')
    expect(seen[0]).not.toHaveProperty('resumeData')
  })

  it('can show data and pieces of output while it works, in order and before its result', async () => {
    const log = createTool({
      id: 'log',
      execute: async (_, { write, report }) => {
        write({ type: 'data-progress', data: { done: 1 }, id: 'p' })
        report('line 1')
        await turn()
        report({ line: 2 })
        return 'ok'
      },
    })
    const chunks = await chunksOf(await new Agent({ id: 'a', model: scriptedModel([call('log'), 'Done.']), tools: { log } }).stream('Go.', { runId: 'run-1' }))
    const from = typesOf(chunks).indexOf('tool-call') + 1
    expect(chunks.slice(from, from + 4)).toMatchObject([
      { type: 'data-progress', data: { done: 1 }, id: 'p', runId: 'run-1' },
      { type: 'tool-output', payload: { toolCallId: 'call_0_0', toolName: 'log', output: 'line 1' } },
      { type: 'tool-output', payload: { output: { line: 2 } } },
      { type: 'tool-result', payload: { result: 'ok' } },
    ])
  })

  it('can add context for the next step, after its result', async () => {
    const read = createTool({
      id: 'read',
      execute: async (_, { sendSignal }) => {
        await sendSignal({ type: 'reactive', contents: 'Mind the rules.', attributes: { path: 'RULES' } })
        return 'text'
      },
    })
    const model = scriptedModel([call('read'), 'Done.'])
    const stream = await new Agent({ id: 'a', model, tools: { read } }).stream('Go.')
    expect(of(await chunksOf(stream), 'data-signal')).toMatchObject([{ data: { contents: 'Mind the rules.' } }])
    expect(model.calls[1]?.prompt.slice(-2)).toMatchObject([
      { role: 'tool' },
      { role: 'user', content: [{ text: '<system-reminder path="RULES">Mind the rules.</system-reminder>' }] },
    ])
  })

  it('that sends a signal which is none reads why', async () => {
    const read = createTool({ id: 'read', execute: (_, { sendSignal }) => sendSignal({ type: 'gossip' as never, contents: 'x' }) })
    const { toolResults } = await new Agent({ id: 'a', model: scriptedModel([call('read'), 'Done.']), tools: { read } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining('gossip') }])
  })

  it('has no voice any more when it is over', async () => {
    let late: ToolContext | undefined
    const fast = createTool({
      id: 'fast',
      execute: async (_, context) => {
        late = context
        return 'ok'
      },
    })
    const stream = await new Agent({ id: 'a', model: scriptedModel([call('fast'), 'Done.']), tools: { fast } }).stream('Go.')
    await stream.result
    const before = (await chunksOf(stream)).length
    late?.write({ type: 'data-late', data: 1 })
    late?.report('late')
    await expect(late?.sendSignal({ type: 'reactive', contents: 'late' })).rejects.toMatchObject({ code: 'no_active_run' })
    expect(await chunksOf(stream)).toHaveLength(before)
  })

  it('may answer piece by piece: what comes before the last value is preliminary', async () => {
    const count = createTool({
      id: 'count',
      async *execute() {
        yield { n: 1 }
        yield { n: 2 }
        yield { n: 3 }
      },
    })
    const model = scriptedModel([call('count'), 'Done.'])
    const stream = await new Agent({ id: 'a', model, tools: { count } }).stream('Go.')
    const results = of(await chunksOf(stream), 'tool-result').map(({ payload }) => [payload.result, payload.preliminary])
    expect(results).toEqual([[{ n: 1 }, true], [{ n: 2 }, true], [{ n: 3 }, undefined]])
    expect(await stream.toolResults).toMatchObject([{ result: { n: 3 } }])
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain('"n":2')
  })

  it('that breaks off while it answers piece by piece is an error', async () => {
    const count = createTool({
      id: 'count',
      async *execute() {
        yield 1
        throw new Error('lost count')
      },
    })
    const { toolResults } = await new Agent({ id: 'a', model: scriptedModel([call('count'), 'Done.']), tools: { count } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: 'count failed: lost count' }])
  })

  it('[P1.2] may change its input: the stored call and later prompts stay unchanged', async () => {
    const change = (input: unknown) => {
      const list = (input as { list: number[] }).list
      list.push(9)
      return list.length
    }
    const model = scriptedModel([{ toolCalls: [{ toolName: 'plain', input: { list: [1] } }, { toolName: 'checked', input: { list: [1] } }] }, 'Done.'])
    const requireApproval = (input: unknown) => change(input) > 5
    const tools = {
      plain: createTool({ id: 'plain', requireApproval, execute: async (input) => change(input) }),
      checked: createTool({ id: 'checked', inputSchema: jsonSchema<{ list: number[] }>({ type: 'object' }), requireApproval, execute: async (input) => change(input) }),
    }
    const { toolCalls } = await new Agent({ id: 'a', model, tools }).generate('Go.')
    expect(toolCalls.map((call) => call.args)).toEqual([{ list: [1] }, { list: [1] }])
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain('9')
  })

  it('can\'t write what would pass for something the run said', async () => {
    const model = scriptedModel([call('t'), 'Done.'])
    const t = createTool({ id: 't', execute: async (_, { write }) => write({ type: 'finish' as never, data: 1 }) })
    const stream = await new Agent({ id: 'a', model, tools: { t } }).stream('Go.')
    const chunks = await chunksOf(stream)
    expect(of(chunks, 'finish')).toHaveLength(1)
    expect(of(chunks, 'tool-error')[0]?.payload.error.message).toMatch(/'finish'.*begin with 'data-'/)
  })

  it.each(['data-signal', 'data-user-message', 'data-thread-snapshot', 'data-run-resumed', 'data-inbox'] as const)('[G2.34] can\'t write %s: a display takes it for the thread\'s own', async (type) => {
    const t = createTool({ id: 't', execute: async (_, { write }) => write({ type, data: {} }) })
    const chunks = await chunksOf(await new Agent({ id: 'a', model: scriptedModel([call('t'), 'Done.']), tools: { t } }).stream('Go.'))
    expect(of(chunks, 'tool-error')[0]?.payload.error.message).toContain(`'${type}', which only the thread may publish`)
    expect(chunks.some((chunk) => chunk.type === type)).toBe(false)
  })

  it.each(['write', 'report'] as const)('[G1.31] can\'t %s what is no JSON: the model reads that, and nothing of it is published', async (way) => {
    const circle: Record<string, unknown> = {}
    circle.self = circle
    const t = createTool({
      id: 't',
      execute: async (_, { write, report }) => (way === 'write' ? write({ type: 'data-x', data: circle as never }) : report(circle)),
    })
    const chunks = await chunksOf(await new Agent({ id: 'a', model: scriptedModel([call('t'), 'Done.']), tools: { t } }).stream('Go.'))
    expect(of(chunks, 'tool-error')[0]?.payload.error.message).toMatch(way === 'write' ? /^What t wrote can't be stored as JSON/ : /^What t reported can't be stored as JSON/)
    expect(chunks.some(({ type }) => type === 'data-x' || type === 'tool-output')).toBe(false)
    expect(of(chunks, 'finish')).toHaveLength(1)
  })

  it('that throws something unreadable fails like any other', async () => {
    const unreadable = Object.defineProperty(new Error(), 'message', { get: () => { throw new Error('no') } })
    const t = createTool({ id: 't', execute: () => Promise.reject(unreadable) })
    const { toolResults, text } = await new Agent({ id: 'a', model: scriptedModel([call('t'), 'Done.']), tools: { t } }).generate('Go.')
    expect(toolResults).toMatchObject([{ isError: true, result: expect.stringContaining('t failed') }])
    expect(text).toBe('Done.')
  })
})

import { describe, expect, it } from 'vitest'
import { Agent, createTool, Memory, ToolError, type Logger } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const planted = ['sk-proj-planted-0123456789abcdef', 'db.internal.example']
const words = `connect ECONNREFUSED ${planted[1]}:5432 with ${planted[0]} <system-reminder>`
const meant = 'This card has expired.'
const keys = { tenant: 'the-key-of-a-tenant', operator: 'the-key-of-an-operator' }
const mine = { thread: 't1', resource: 'user-1' }

/** A tool that throws one error for operators and one for readers, in one step, called by an agent or by an agent below it. */
async function world(more: { below?: boolean } = {}) {
  const lines: string[] = []
  const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const logger: Logger = { debug: log, info: log, warn: log, error: log }
  const inputSchema = { type: 'object', properties: {} } as const
  const pay = createTool({ id: 'pay', inputSchema, execute: () => { throw new Error(words) } })
  const charge = createTool({ id: 'charge', inputSchema, execute: () => { throw new ToolError(meant, { cause: new Error(words) }) } })
  const model = scriptedModel(({ prompt }) =>
    prompt.at(-1)?.role === 'tool' ? 'Sorry.' : { toolCalls: [{ toolName: 'pay', toolCallId: 'call-pay', input: {} }, { toolName: 'charge', toolCallId: 'call-charge', input: {} }] })
  const payer = new Agent({ id: 'payer', description: 'Pays.', model, tools: { pay, charge } })
  const calling = scriptedModel(({ prompt }) => (prompt.at(-1)?.role === 'tool' ? 'Sorry.' : { toolCalls: [{ toolName: 'agent-payer', input: { prompt: 'Pay' } }] }))
  const guide = more.below ? new Agent({ id: 'guide', model: calling, agents: { payer } }) : new Agent({ id: 'guide', model, tools: { pay, charge }, memory: new Memory() })
  const { ask } = await served({ guide }, {
    logger, auth: apiKeys({ [keys.tenant]: { id: 'tenant', resources: ['user-1'] }, [keys.operator]: { id: 'admin', resources: '*' } }),
  })
  const as = async (who: keyof typeof keys, path: string, json?: unknown) =>
    (await ask(path, { ...(json === undefined ? {} : { json }), headers: { authorization: `Bearer ${keys[who]}` } })).text()
  return { as, ask, lines, model }
}

const hasPlanted = (text: string) => planted.filter((word) => text.includes(word))

describe('the words of an error that a tool throws', () => {
  it('[H3.15] reach the model, and no tenant by any door: it gets a code and the id of the call, under which the log has them without secrets', async () => {
    const { as, lines, model } = await world()
    const doors: Array<[string, () => Promise<string>]> = [
      ['generate', () => as('tenant', '/agents/guide/generate', { messages: 'Pay' })],
      ['generate on a thread', () => as('tenant', '/agents/guide/generate', { messages: 'Pay', memory: mine })],
      ['stream', () => as('tenant', '/agents/guide/stream', { messages: 'Pay', memory: mine })],
      ['chat', () => as('tenant', '/agents/guide/chat', { id: 't1', resourceId: 'user-1', messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Pay' }] }] })],
      ['messages', () => as('tenant', '/memory/threads/t1/messages?agentId=guide&resourceId=user-1')],
    ]
    for (const [door, open] of doors) {
      const text = await open()
      expect([door, hasPlanted(text)]).toEqual([door, []])
      expect([door, text.includes('The tool failed (tool_failed). The operator finds the reason in the log, under call-pay.'), text.includes(meant)]).toEqual([door, true, true])
    }
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain(planted[1])
    const logged = lines.filter((line) => line.includes('call-pay'))
    expect(logged).toHaveLength(1)
    expect(logged[0]).toContain(planted[1])
    expect(lines.join('\n')).not.toContain(planted[0])
  })

  it('[H3.15] are in no snapshot of a tenant, and an operator reads them', async () => {
    const { as, ask } = await world()
    expect(hasPlanted(await as('operator', '/agents/guide/generate', { messages: 'Pay', memory: mine }))).toContain(planted[1])
    expect(hasPlanted(await as('operator', '/memory/threads/t1/messages?agentId=guide&resourceId=user-1'))).toContain(planted[1])
    const { body } = await ask('/agents/guide/threads/subscribe', { json: { threadId: 't1', resourceId: 'user-1', snapshot: true }, headers: { authorization: `Bearer ${keys.tenant}` } })
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (reader && !/data-thread-snapshot.*\n\n/.test(text)) text += (await reader.read()).value ?? ''
    await reader?.cancel()
    expect([text.includes('tool_failed'), text.includes(meant), hasPlanted(text)]).toEqual([true, true, []])
  })

  it('[H3.15] are in no chunk of an agent below', async () => {
    const { as } = await world({ below: true })
    for (const memory of [undefined, mine]) {
      const text = await as('tenant', '/agents/guide/stream', { messages: 'Pay', ...(memory ? { memory } : {}) })
      expect([text.includes('tool_failed'), text.includes(meant), hasPlanted(text)]).toEqual([true, true, []])
    }
  })
})

describe('the words of a tool that the provider executed', () => {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } } as never
  const search = { toolCallId: 'ws-1', toolName: 'web_search' }
  const failed: Record<string, unknown> = {
    'a text': words, 'an object': { type: 'web_search_tool_result_error', errorCode: 'unavailable', message: words },
    // As OpenAI reports it: without a mark.
    'the result of an MCP server with an error': { type: 'call', serverLabel: 'crm', name: 'find', arguments: '{}', error: words },
    'the result of an MCP server with an error and an output': { type: 'call', serverLabel: 'crm', name: 'find', arguments: '{}', output: words, error: { type: 'http_error', code: 500, message: words } },
  }

  it.each(Object.keys(failed))('[H3.11] reach the model and no tenant by any door, as %s: it gets a code and the id of the call', async (form) => {
    const lines: string[] = []
    const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`)
    const result = failed[form] as never
    const model = scriptedModel(({ prompt }) => (JSON.stringify(prompt).includes('Again') ? 'Yes.' : {
      parts: [
        { type: 'tool-call', ...search, input: '{}', providerExecuted: true },
        { type: 'tool-result', ...search, result, ...(form.startsWith('the result of') ? {} : { isError: true }), providerMetadata: { openai: { note: words } } },
        { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Sorry.' }, { type: 'text-end', id: 't' },
        { type: 'finish', finishReason: { unified: 'stop', raw: 'x' }, usage },
      ],
    }))
    const payer = new Agent({ id: 'payer', description: 'Pays.', model })
    const calling = scriptedModel(({ prompt }) => (prompt.at(-1)?.role === 'tool' ? 'Sorry.' : { toolCalls: [{ toolName: 'agent-payer', input: { prompt: 'Pay' } }] }))
    const agents = { guide: new Agent({ id: 'guide', model, memory: new Memory() }), above: new Agent({ id: 'above', model: calling, agents: { payer } }) }
    const { ask } = await served(agents, {
      logger: { debug: log, info: log, warn: log, error: log },
      auth: apiKeys({ [keys.tenant]: { id: 'tenant', resources: ['user-1'] }, [keys.operator]: { id: 'admin', resources: '*' } }),
    })
    const as = async (who: keyof typeof keys, path: string, json?: unknown) =>
      (await ask(path, { ...(json === undefined ? {} : { json }), headers: { authorization: `Bearer ${keys[who]}` } })).text()
    const doors: Record<string, () => Promise<string>> = {
      generate: () => as('tenant', '/agents/guide/generate', { messages: 'Pay' }),
      'generate on a thread': () => as('tenant', '/agents/guide/generate', { messages: 'Pay', memory: mine }),
      stream: () => as('tenant', '/agents/guide/stream', { messages: 'Pay' }),
      'stream of an agent above': () => as('tenant', '/agents/above/stream', { messages: 'Pay', memory: { thread: 't2', resource: 'user-1' } }),
      chat: () => as('tenant', '/agents/guide/chat', { id: 't1', resourceId: 'user-1', messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Pay' }] }] }),
      messages: () => as('tenant', '/memory/threads/t1/messages?agentId=guide&resourceId=user-1'),
    }
    for (const [door, open] of Object.entries(doors)) {
      const text = await open()
      expect([door, hasPlanted(text), text.includes("The model's provider failed (provider_error). The operator finds the reason in the log, under ws-1.")]).toEqual([door, [], true])
      // A page shows it as history does: as an error, not as a result.
      if (door === 'chat') expect(text).toContain('"type":"tool-output-error"')
    }
    expect(hasPlanted(await as('operator', '/memory/threads/t1/messages?agentId=guide&resourceId=user-1'))).toContain(planted[1])
    await as('tenant', '/agents/guide/generate', { messages: 'Again', memory: mine })
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain(planted[1])
    const logged = lines.filter((line) => line.includes('hidden from its caller'))
    expect([logged.length, logged[0]?.includes(String(planted[1]))]).toEqual([1, true])
    expect(lines.join('\n')).not.toContain(planted[0])
  })
})

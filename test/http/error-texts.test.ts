import { describe, expect, it } from 'vitest'
import { Agent, type Logger } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const planted = ['sk-proj-planted-0123456789abcdef', 'org-planted42', 'llm.internal.example']
const words = `Incorrect API key provided: ${planted[0]}. Organization ${planted[1]} at https://${planted[2]}:8443/v1.`
const keys = { tenant: 'the-key-of-a-tenant', operator: 'the-key-of-an-operator' }
const mine = { thread: 't1', resource: 'user-1' }

/** A server whose provider fails with words that are for its operator. */
async function world(more: { below?: boolean } = {}) {
  const lines: string[] = []
  const log = (message: string, fields?: object) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const logger: Logger = { debug: log, info: log, warn: log, error: log }
  const failing = new Agent({ id: 'failing', name: 'failing', description: 'Fails.', model: scriptedModel([{ error: { status: 401, message: words } }], { loop: true }) })
  const model = scriptedModel([{ toolCalls: [{ toolName: 'agent-failing', input: { prompt: 'Hi' } }] }, 'Sorry.'], { loop: true })
  const guide = more.below ? new Agent({ id: 'guide', model, agents: { failing } }) : failing
  const { ask, heed } = await served({ guide }, {
    logger, auth: apiKeys({ [keys.tenant]: { id: 'tenant', resources: ['user-1'] }, [keys.operator]: { id: 'admin', resources: '*' } }),
  })
  const as = (who: keyof typeof keys, path: string, json?: unknown) =>
    ask(path, { ...(json === undefined ? {} : { json }), headers: { authorization: `Bearer ${keys[who]}` } })
  return { as, lines, heed, agentId: guide.id }
}

const hasPlanted = (text: string) => planted.filter((word) => text.includes(word))

describe('the words of a provider', () => {
  it('[H3.11] are in no response of generate() to a tenant, which gets a code and the id that the log has', async () => {
    const { as, lines } = await world()
    const answer = await as('tenant', '/agents/failing/generate', { messages: 'Hi' })
    const text = await answer.text()
    expect([answer.status, hasPlanted(text)]).toEqual([502, []])
    const { code, details } = JSON.parse(text) as { code: string; details: { errorId: string } }
    expect(code).toBe('provider_error')
    expect(Object.keys(details)).toEqual(['errorId'])
    const logged = lines.filter((line) => line.includes(details.errorId))
    expect(logged).toHaveLength(1)
    expect(logged[0]).toContain(planted[2])
    // Secrets are in no log either.
    expect(lines.join('\n')).not.toContain(planted[0])
  })

  it('[H3.11] are in no stream, snapshot, message, outcome or chat of a tenant, and the log has them under the id of the run', async () => {
    const { as, lines } = await world()
    const doors: Array<[string, () => Promise<Response>]> = [
      ['stream', () => as('tenant', '/agents/failing/stream', { messages: 'Hi' })],
      ['stream of a thread', () => as('tenant', '/agents/failing/stream', { messages: 'Hi', memory: mine })],
      ['generate on a thread', () => as('tenant', '/agents/failing/generate', { messages: 'Hi', memory: mine })],
      ['send with its outcome', () => as('tenant', '/agents/failing/send-message?wait=outcome', { message: 'Hi', threadId: 't1', resourceId: 'user-1' })],
      ['chat', () => as('tenant', '/agents/failing/chat', { id: 't1', resourceId: 'user-1', messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] })],
      ['messages', () => as('tenant', '/memory/threads/t1/messages?agentId=failing&resourceId=user-1')],
      ['signal', async () => {
        const { queued } = (await (await as('tenant', '/agents/failing/threads/t1/queue')).json()) as { queued: unknown }
        return Response.json(queued)
      }],
    ]
    for (const [door, open] of doors) expect([door, hasPlanted(await (await open()).text())]).toEqual([door, []])
    const streamed = await (await as('tenant', '/agents/failing/stream', { messages: 'Hi' })).text()
    const { runId, payload } = JSON.parse(/data: (\{"type":"error".*\})/.exec(streamed)?.[1] ?? '{}') as { runId: string; payload: { error: { code: string; message: string } } }
    expect(payload.error).toMatchObject({ name: 'HeedError', code: 'provider_error' })
    expect(payload.error.message).toContain(runId)
    expect(lines.filter((line) => line.includes(runId) && line.includes(String(planted[2])))).not.toEqual([])
  })

  it('[H3.11] are in no snapshot of a tenant', async () => {
    const { as } = await world()
    await (await as('tenant', '/agents/failing/stream', { messages: 'Hi', memory: mine })).text()
    const { body } = await as('tenant', '/agents/failing/threads/subscribe', { threadId: 't1', resourceId: 'user-1', snapshot: true })
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (reader && !text.includes('data-thread-snapshot')) text += (await reader.read()).value ?? ''
    await reader?.cancel()
    expect(text).toContain('provider_error')
    expect(hasPlanted(text)).toEqual([])
  })

  it('[H3.11] are shown to an operator', async () => {
    const { as } = await world()
    expect(hasPlanted(await (await as('operator', '/agents/failing/generate', { messages: 'Hi' })).text())).toContain(planted[2])
    expect(hasPlanted(await (await as('operator', '/agents/failing/stream', { messages: 'Hi', memory: mine })).text())).toContain(planted[2])
    expect(hasPlanted(await (await as('operator', '/memory/threads/t1/messages?agentId=failing&resourceId=user-1')).text())).toContain(planted[2])
  })

  it('[H3.11] of an agent below are in no tool result, which the model could repeat', async () => {
    const { as, lines } = await world({ below: true })
    const streamed = await (await as('tenant', '/agents/guide/stream', { messages: 'Hi', memory: mine })).text()
    expect(streamed).toContain('tool-error')
    expect(hasPlanted(streamed)).toEqual([])
    expect(hasPlanted(await (await as('tenant', '/memory/threads/t1/messages?agentId=guide&resourceId=user-1')).text())).toEqual([])
    const alone = await (await as('tenant', '/agents/guide/stream', { messages: 'Hi' })).text()
    expect([alone.includes('tool-error'), hasPlanted(alone)]).toEqual([true, []])
    expect(lines.filter((line) => line.includes(String(planted[2])))).not.toEqual([])
  })
})

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { EphemeralRuns } from '../../src/heed/ephemeral-runs.ts'
import { RunCallers } from '../../src/http/request/access.ts'
import { apiKeys, type Principal } from '../../src/http/server.ts'
import { Agent, createTool, RequestContext } from '../../src/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({ to: z.string() }), execute: async ({ to }) => `paid ${to}` })
const ask = createTool({ id: 'ask', execute: async (_input, { resumeData, suspend }) => (resumeData === undefined ? suspend?.({ question: 'Which?' }) : `noted ${JSON.stringify(resumeData)}`) })
const pays = (...to: string[]): ScriptedStep => ({ text: 'I pay.', toolCalls: to.map((name) => ({ toolName: 'pay', input: { to: name } })) })
const asks: ScriptedStep = { toolCalls: [{ toolName: 'ask', input: {} }] }
const payer = (...script: Array<string | ScriptedStep>) => {
  const model = scriptedModel(script)
  return { model, agent: new Agent({ id: 'guide', model, tools: { pay, ask } }) }
}

async function chunksOf(response: Response): Promise<Array<{ type: string; runId: string; object?: unknown; payload: Record<string, unknown> }>> {
  const frames = (await response.text()).split('\n\n').filter((frame) => frame.startsWith('data: {'))
  return frames.map((frame) => JSON.parse(frame.slice('data: '.length)) as never)
}

const said = (chunks: Awaited<ReturnType<typeof chunksOf>>) => chunks.flatMap(({ type, payload }) => (type === 'text-delta' ? [payload.text] : [])).join('')

describe('a run without a thread that waits for a decision', () => {
  it.each([['approve', 'paid Ada', 'Paid.'], ['decline', 'Not now.', 'Paid.']])('[H1.11] over HTTP: its caller can %s, and gets the rest of the run', async (decide, result, end) => {
    const { agent, model } = payer(pays('Ada'), 'Paid.', pays('Ada'), 'Paid.')
    const { ask: request } = await served({ guide: agent })
    // A reason is given to the model, which reads it of a decline alone.
    const why = decide === 'decline' ? { reason: 'Not now.' } : {}
    for (const path of ['approve-tool-call', 'approve-tool-call-generate'])
      expect(await (await request(`/agents/guide/${path}`, { json: { runId: 'r', reason: 'Yes.' } })).text()).toContain("'reason'")
    const begun = await chunksOf(await request('/agents/guide/stream', { json: { messages: 'Pay.' } }))
    const call = begun.find(({ type }) => type === 'tool-call-approval')
    const rest = await chunksOf(await request(`/agents/guide/${decide}-tool-call`, { json: { runId: call?.runId, toolCallId: call?.payload.toolCallId, ...why } }))
    expect([said(rest), rest.at(-1)?.type]).toEqual([end, 'finish'])
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain(result)
    const generated = (await (await request('/agents/guide/generate', { json: { messages: 'Pay.' } })).json()) as { runId: string; finishReason: string; suspendPayload: object }
    expect(generated).toMatchObject({ finishReason: 'suspended', suspendPayload: { toolName: 'pay', args: { to: 'Ada' } } })
    const { toolCallId } = generated.suspendPayload as { toolCallId: string }
    const whole = await (await request(`/agents/guide/${decide}-tool-call-generate`, { json: { runId: generated.runId, toolCallId, ...why } })).json()
    expect(whole).toMatchObject({ text: end, finishReason: 'stop' })
    expect((await request('/agents/guide/approve-tool-call', { json: { runId: generated.runId, toolCallId } })).status).toBe(409)
  })

  it('[H1.11] over HTTP: a tool that waits for data gets it', async () => {
    const { agent, model } = payer(asks, 'Done.')
    const { ask: request } = await served({ guide: agent })
    const { runId, suspendPayload } = (await (await request('/agents/guide/generate', { json: { messages: 'Ask.' } })).json()) as { runId: string; suspendPayload: unknown }
    expect(suspendPayload).toMatchObject({ toolName: 'ask', suspendPayload: { question: 'Which?' } })
    expect(said(await chunksOf(await request('/agents/guide/resume-stream', { json: { runId, resumeData: { color: 'blue' } } })))).toBe('Done.')
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain('blue')
  })

  it('[H1.11] belongs to its caller: to others it does not exist', async () => {
    const { agent } = payer(pays('Ada'), 'Paid.')
    const auth = apiKeys({ 'the-key-of-one-user': { id: 'one', resources: ['one'] }, 'the-key-of-two-user': { id: 'two', resources: ['two'] } })
    const { ask: request } = await served({ guide: agent }, { auth })
    const as = (who: string, path: string, json: object) => request(path, { json, headers: { authorization: `Bearer the-key-of-${who}-user` } })
    const { runId } = (await (await as('one', '/agents/guide/generate', { messages: 'Pay.' })).json()) as { runId: string }
    expect((await as('two', '/agents/guide/approve-tool-call-generate', { runId })).status).toBe(409)
    expect((await as('two', '/agents/guide/generate', { messages: 'Pay.', runId })).status).toBe(403)
    expect(await (await as('one', '/agents/guide/approve-tool-call-generate', { runId })).json()).toMatchObject({ text: 'Paid.' })
  })

  it('[H7.12] a caller that begins very many displaces its own runs, and none of another caller', () => {
    const [callers, runs] = [new RunCallers(10), new EphemeralRuns()]
    const [one, two] = ['one', 'two'].map((id): Principal => ({ id, resources: [id] })) as [Principal, Principal]
    const begin = (runId: string, principal: Principal) => {
      callers.add(runId, principal, runs)
      runs.suspend(runId, { agentId: 'guide', rows: () => [], options: {}, step: 0, calls: [], decided: new Set(), edit: undefined, followers: [] })
    }
    begin('first of one', one)
    for (let n = 0; n < 100; n += 1) begin(`${n} of two`, two)
    begin('second of one', one)
    const kept = (runId: string, principal: Principal) => [callers.mayDecide(runId, principal), runs.suspended(runId) !== undefined]
    expect(['first of one', 'second of one'].map((runId) => kept(runId, one))).toEqual([[true, true], [true, true]])
    expect(['0 of two', '91 of two', '92 of two', '99 of two'].map((runId) => kept(runId, two)[0])).toEqual([false, false, true, true])
    expect(kept('91 of two', two)).toEqual([false, false])
    expect(() => callers.add('99 of two', one, runs)).toThrow(expect.objectContaining({ code: 'invalid_argument' }))
  })

  it('[R6.14] in the process: each of two calls is decided once, and the run goes on when both are', async () => {
    const { agent, model } = payer(pays('Ada', 'Bob'), 'Paid one.')
    const { heed } = await served({ guide: agent })
    const { runId, suspended } = await agent.generate('Pay.')
    const [first, second] = suspended.map(({ toolCallId }) => toolCallId) as [string, string]
    await expect(agent.approveToolCall({ runId })).rejects.toMatchObject({ code: 'invalid_argument', details: { toolCallIds: [first, second] } })
    await expect(agent.approveToolCall({ runId, toolCallId: first, digest: 'another' })).rejects.toMatchObject({ code: 'invalid_argument' })
    const one = await agent.approveToolCall({ runId, toolCallId: first, by: 'Ada' })
    await expect(agent.declineToolCall({ runId, toolCallId: first })).rejects.toMatchObject({ code: 'run_not_suspended' })
    await expect(agent.generate('Again.', { runId })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'runId' } })
    const other = await agent.declineToolCall({ runId, toolCallId: second, reason: 'Too dear.' })
    expect([await one.text, await other.text]).toEqual(['Paid one.', 'Paid one.'])
    expect(JSON.stringify(await one.messages)).toMatch(/"approval":\{[^}]*"by":"Ada"/)
    expect(JSON.stringify(model.calls[1]?.prompt)).toMatch(/paid Ada.*Too dear\./)
    await expect(agent.approveToolCall({ runId, toolCallId: first })).rejects.toMatchObject({ code: 'run_not_suspended', message: expect.stringContaining('memory: { thread') })
    await heed.close()
  })

  it('[R6.14] in the process: a run that waits again is decided again, and one that waits at a close is not run', async () => {
    const { agent } = payer(pays('Ada'), pays('Bob'), 'Paid both.', pays('Eve'))
    const { heed } = await served({ guide: agent })
    const { runId } = await agent.generate('Pay.')
    const again = await (await agent.approveToolCall({ runId })).result
    expect(again).toMatchObject({ finishReason: 'suspended', suspended: [{ args: { to: 'Bob' } }] })
    expect(await (await agent.approveToolCall({ runId })).text).toBe('Paid both.')
    const waiting = await agent.generate('Pay.')
    await heed.close()
    await expect(agent.approveToolCall({ runId: waiting.runId })).rejects.toMatchObject({ code: expect.stringMatching(/closed|run_not_suspended/) })
  })

  it('[R6.9] [R6.14] in the process: a second click does not approve the call of a later step that has the same id', async () => {
    const same = (to: string): ScriptedStep => ({ toolCalls: [{ toolName: 'pay', toolCallId: 'call_0', input: { to } }] })
    const { agent } = payer(same('Ada'), pays('Bob'), same('Eve'), 'Paid.')
    const { heed } = await served({ guide: agent })
    const { runId } = await agent.generate('Pay.')
    await (await agent.approveToolCall({ runId, toolCallId: 'call_0' })).result
    const { suspended: [third] } = await (await agent.approveToolCall({ runId })).result
    await expect(agent.approveToolCall({ runId, toolCallId: 'call_0' })).rejects.toMatchObject({ code: 'invalid_argument', details: { field: 'approvalId' } })
    expect(await (await agent.approveToolCall({ runId, approvalId: third!.request!.id })).text).toBe('Paid.')
    await heed.close()
  })
})

describe('requests of existing clients', () => {
  it('[H5.1] find the value of a structured answer in its chunks', async () => {
    const { ask: request } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['{"city":"Bern"}']) }) })
    const structuredOutput = { schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } }
    const chunks = await chunksOf(await request('/agents/guide/stream', { json: { messages: 'Where?', structuredOutput } }))
    expect(chunks.find(({ type }) => type === 'object-result')).toMatchObject({ object: { city: 'Bern' }, payload: { object: { city: 'Bern' } } })
    expect(chunks.findLast(({ type }) => type === 'object')).toMatchObject({ object: expect.any(Object) })
  })

  it('[H5.1] name their run, with and without a thread', async () => {
    const { ask: request } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['One.', 'Two.']) }) })
    for (const [runId, memory] of [['r1', undefined], ['r2', { thread: 't', resource: 'u' }]] as const) {
      expect(await (await request('/agents/guide/generate', { json: { messages: 'Hi', runId, ...(memory ? { memory } : {}) } })).json()).toMatchObject({ runId })
    }
  })

  it('[H5.1] bring a request context in the query, in base64', async () => {
    const agent = new Agent({
      id: 'guide', model: scriptedModel([]), metadata: ({ requestContext }) => ({ team: 'travel', tenant: requestContext.get('tenant') ?? 'none' }),
      tools: ({ requestContext }) => (requestContext.get('tenant') === 'zürich' ? { pay } : {}),
    })
    const { ask: request, client } = await served({ guide: agent })
    const context = Buffer.from(JSON.stringify({ tenant: 'zürich' })).toString('base64')
    const details = async (query = '') => (await (await request(`/agents/guide${query}`)).json()) as { tools: object; metadata: object }
    expect([Object.keys((await details()).tools), Object.keys((await details(`?requestContext=${encodeURIComponent(context)}`)).tools)]).toEqual([[], ['pay']])
    expect((await details(`?requestContext=${encodeURIComponent(context)}`)).metadata).toEqual({ team: 'travel', tenant: 'zürich' })
    expect(await client.listAgents()).toMatchObject({ guide: { metadata: { team: 'travel', tenant: 'none' } } })
    expect((await client.getAgent('guide').details()).metadata).toEqual({ team: 'travel', tenant: 'none' })
    expect((await request('/agents/guide?requestContext=nonsense')).status).toBe(400)
    expect(await agent.getMetadata({ requestContext: new RequestContext({ tenant: 'bern' }) })).toEqual({ team: 'travel', tenant: 'bern' })
  })

  it('[U1.13] read the queue and the active run of a thread that does not exist yet, as of one that is not theirs', async () => {
    const auth = apiKeys({ 'the-key-of-one-user': { id: 'one', resources: ['one'] }, 'the-key-of-two-user': { id: 'two', resources: ['two'] } })
    const { ask: request } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['Hi.']) }) }, { auth })
    const as = (who: string, path: string, json?: object) => request(path, { ...(json ? { json } : {}), headers: { authorization: `Bearer the-key-of-${who}-user` } })
    await as('one', '/agents/guide/send-message', { message: 'Hi', threadId: 'of-one' })
    for (const threadId of ['new', 'of-one']) {
      const answers = await Promise.all(['queue', 'active-run'].map((what) => as('two', `/agents/guide/threads/${threadId}/${what}`)))
      expect(await Promise.all(answers.map(async (answer) => [answer.status, await answer.json()]))).toEqual([[200, { queued: [] }], [200, { run: null }]])
    }
  })
})

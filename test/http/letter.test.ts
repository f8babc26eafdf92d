import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Memory } from '../../src/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({ to: z.string() }), execute: () => 'paid' })
const paying: ScriptedStep = { toolCalls: [{ toolName: 'pay', toolCallId: 'call-1', input: { to: 'Ada' } }] }

async function open(...steps: Array<string | ScriptedStep>) {
  const model = scriptedModel(steps)
  const agent = new Agent({ id: 'guide', model, tools: { pay }, instructions: 'Keep this to yourself.', memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }) })
  const { ask } = await served({ guide: agent })
  const post = async (path: string, json: object) => {
    const response = await ask(path, { json })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {} }
  }
  const quiet = async () => {
    await expect.poll(() => agent.activeRun(thread)).toBeNull()
  }
  return { agent, model, ask, post, quiet }
}

/** Chunks of frames as existing clients read them: split at empty lines, `data: ` and one line of JSON. */
function chunksIn(text: string): Array<{ type: string; runId?: string; payload: Record<string, unknown> }> {
  return text.split('\n\n').filter((frame) => frame.startsWith('data: ') && frame !== 'data: [DONE]').map((frame) => JSON.parse(frame.slice(6)) as { type: string; payload: Record<string, unknown> })
}

describe('what existing clients ask, to the letter', () => {
  it('[H5.1] sends are acknowledged with accepted, runId and the signal; targets are checked', async () => {
    const { post, quiet, agent } = await open('One.', 'Two.', 'Three.')
    for (const [path, what] of [['send-message', { message: 'Hi' }], ['queue-message', { message: { contents: 'Hi', attributes: { from: 'Ada' } } }], ['signals', { signal: { type: 'reactive', tagName: 'x', contents: 'y' } }]] as const) {
      const { status, body } = await post(`/agents/guide/${path}`, { ...what, ...thread, ifActive: { behavior: 'deliver' }, ifIdle: { behavior: 'wake', streamOptions: { maxSteps: 3, tracingOptions: { metadata: { a: 1 } } } } })
      expect([status, Object.keys(body).toSorted()], path).toEqual([200, ['accepted', 'runId', 'signal']])
      expect(body, path).toMatchObject({ accepted: true, runId: expect.any(String) as string, signal: { id: expect.any(String) as string } })
      await quiet()
    }
    const statusOf = async (json: object) => (await post('/agents/guide/send-message', { message: 'Hi', ...json })).status
    expect(await statusOf({})).toBe(400)
    expect(await statusOf({ threadId: 'thread-1' })).toBe(400)
    expect(await statusOf({ runId: 'r', ifIdle: {} })).toBe(400)
    expect(await statusOf({ runId: 'nothing' })).toBe(409)
    expect(await statusOf({ threadId: 'thread-1', resourceId: 'user-2' })).toBe(403)
    expect((await post('/agents/guide/signals', { signal: { type: 'nonsense', contents: 'x' }, ...thread })).status).toBe(400)
    const passing = { type: 'reactive', contents: 'x', transient: true }
    const { body: kept } = await post('/agents/guide/signals', { signal: passing, ...thread, ifIdle: { behavior: 'persist' } })
    expect(kept).toMatchObject({ accepted: true, runId: (kept.signal as { id: string }).id, signal: { transient: true } })
    expect((await post('/agents/guide/signals', { signal: { ...passing, type: 'state' }, ...thread })).status).toBe(400)
    expect(await agent.activeRun(thread)).toBeNull()
  })

  it('[H5.6] an unknown name in ifActive, ifIdle or streamOptions is rejected by its name, and so is one that has no effect', async () => {
    const { post, agent } = await open('One.')
    const sends = { 'send-message': { message: 'Hi' }, 'queue-message': { message: 'Hi' }, signals: { signal: { type: 'reactive', contents: 'x' } }, 'state-signals': { state: { stateId: 's', cacheKey: 'k', contents: 'x' } } }
    const wrong: Array<[string, object]> = [
      ['when', { ifActive: { when: 1 } }],
      ['when', { ifIdle: { when: 1 } }],
      ['unknownOption', { ifIdle: { streamOptions: { unknownOption: 1 } } }],
      ['threads', { ifIdle: { streamOptions: { memory: { threads: 'x' } } } }],
      ['name', { ifIdle: { streamOptions: { memory: { thread: { name: 'x' } } } } }],
      ['workingMemory', { ifIdle: { streamOptions: { memory: { options: { workingMemory: {} } } } } }],
      ['speed', { ifIdle: { streamOptions: { modelSettings: { speed: 1 } } } }],
      ['ifIdle.streamOptions.memory.options.save', { ifIdle: { streamOptions: { memory: { options: { save: false } } } } }],
      ['ifIdle.streamOptions.maxSteps', { ifIdle: { behavior: 'persist', streamOptions: { maxSteps: 1 } } }],
      ['ifIdle.streamOptions.memory.options', { ifIdle: { behavior: 'discard', streamOptions: { memory: { options: { lastMessages: 1 } } } } }],
    ]
    for (const [path, what] of Object.entries(sends)) {
      for (const [name, more] of wrong) {
        const { status, text } = await post(`/agents/guide/${path}`, { ...what, ...thread, ...more })
        expect([status, text], `${path} ${JSON.stringify(more)}`).toEqual([400, expect.stringContaining(name) as string])
      }
    }
    expect((await post('/agents/guide/queue-message', { message: 'Hi', ...thread, ifActive: { behavior: 'interrupt' } })).text).toContain('ifActive.behavior has no effect')
    const approval = (streamOptions: object, more: object = { messages: 'Hi' }) => post('/agents/guide/send-tool-approval', { ...thread, toolCallId: 'c', approved: true, streamOptions, ...more })
    for (const name of ['unknownOption', 'memory.threads']) {
      const [outer = '', inner] = name.split('.')
      const { status, text } = await approval({ [outer]: inner ? { [inner]: 1 } : 1 })
      expect([status, text], name).toEqual([400, expect.stringContaining(inner ?? outer) as string])
    }
    expect((await approval({ memory: { options: { save: false } } })).text).toContain('streamOptions.memory.options.save has no effect')
    expect((await approval({ memory: { thread: 'thread-9' } })).text).toContain('streamOptions.memory.thread')
    expect(await approval({ maxSteps: 1 }, {})).toMatchObject({ status: 400, text: expect.stringContaining('streamOptions') as string })
    expect(await agent.activeRun(thread)).toBeNull()
    expect((await agent.getMemory().then((memory) => memory.recall({ ...thread, perPage: false }))).messages).toEqual([])
  })

  it('[H5.1] a stream has the headers and frames they read, and nothing of the prompt', async () => {
    const { post } = await open('Hello.')
    const { headers, text } = await post('/agents/guide/stream', { messages: [{ role: 'user', content: 'Hi' }], memory: { thread: 'thread-1', resource: 'user-1' } })
    expect(headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect([headers.get('cache-control'), headers.get('x-accel-buffering')]).toEqual(['no-cache, no-transform', 'no'])
    expect(text.startsWith(': connected\n\n') && text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(text).not.toMatch(/\r|^(?:id|event|retry):|Keep this to yourself/m)
    const chunks = chunksIn(text)
    expect(chunks.every(({ runId }) => typeof runId === 'string')).toBe(true)
    const at = (type: string) => chunks.find((chunk) => chunk.type === type)?.payload
    expect(at('text-delta')).toMatchObject({ id: expect.any(String) as string, text: 'Hello.' })
    expect(at('step-finish')).toMatchObject({ messageId: expect.any(String) as string, stepResult: { reason: 'stop', isContinued: false }, output: { usage: {} } })
    expect(at('finish')).toMatchObject({ stepResult: { reason: 'stop' }, output: { usage: {} } })
  })

  it('[H5.1] approvals: by thread, by run as a stream, by run as a whole', async () => {
    const { post, agent, quiet, ask } = await open(paying, 'Paid.', paying, 'Paid.', paying, 'Not paid.')
    const suspended = async () => {
      await post('/agents/guide/send-message', { message: 'Pay.', ...thread })
      await expect.poll(async () => (await agent.activeRun(thread))?.status).toBe('suspended')
      return (await agent.activeRun(thread))?.runId ?? ''
    }
    const runId = await suspended()
    const listed = (await (await ask('/agents/guide/suspended-runs?threadId=thread-1&resourceId=user-1&page=0&perPage=5')).json()) as object
    expect(listed).toMatchObject({ total: 1, runs: [{ runId, threadId: 'thread-1', toolCalls: [{ toolCallId: 'call-1', toolName: 'pay' }] }] })
    expect((await post('/agents/guide/send-tool-approval', { ...thread, toolCallId: 'call-1', approved: true })).body).toEqual({
      accepted: true, runId, toolCallId: 'call-1', decided: { approvalId: expect.any(String) as string, approved: true, by: expect.any(String) as string, at: expect.any(String) as string },
    })
    await quiet()
    const streamed = await post('/agents/guide/approve-tool-call', { runId: await suspended(), toolCallId: 'call-1', requestContext: {} })
    expect(chunksIn(streamed.text).map(({ type }) => type)).toEqual(expect.arrayContaining(['tool-result', 'text-delta', 'finish']))
    await quiet()
    const whole = await post('/agents/guide/decline-tool-call-generate', { runId: await suspended(), toolCallId: 'call-1', reason: 'Too much.' })
    expect(whole.body).toMatchObject({ text: 'Not paid.', finishReason: 'stop' })
  })

  it('[H5.1] what tools of the client answered goes on as the next turn of the thread', async () => {
    const { post, model, quiet } = await open({ toolCalls: [{ toolName: 'weather', toolCallId: 'call-2', input: { city: 'Bern' } }] }, 'Sunny.')
    const clientTools = { weather: { description: 'Weather', inputSchema: { type: 'object', properties: { city: { type: 'string' } } } } }
    await post('/agents/guide/send-message', { message: 'Weather?', ...thread, ifIdle: { streamOptions: { clientTools } } })
    await quiet()
    const messages = [{
      role: 'assistant',
      content: [
        { type: 'tool-call', toolCallId: 'call-2', toolName: 'weather', input: { city: 'Bern' } },
        { type: 'tool-result', toolCallId: 'call-2', toolName: 'weather', output: { type: 'json', value: 'sun' } },
      ],
    }]
    const { status, body } = await post('/agents/guide/send-tool-approval', { ...thread, toolCallId: 'call-2', approved: true, messages, streamOptions: { clientTools, memory: { thread: thread.threadId, resource: thread.resourceId }, tracingOptions: {} } })
    expect([status, body]).toEqual([200, { accepted: true, runId: expect.any(String) as string, toolCallId: 'call-2' }])
    await quiet()
    expect(model.callCount).toBe(2)
    expect(model.calls[1]?.prompt.find(({ role }) => role === 'tool')).toMatchObject({ content: [{ type: 'tool-result', toolCallId: 'call-2', output: { value: 'sun' } }] })
  })

  it('[H5.1] generate answers calls of client tools so that their results can follow, on a thread and without one', async () => {
    const clientTools = { weather: { description: 'Weather', inputSchema: { type: 'object', properties: { city: { type: 'string' } } } } }
    for (const memory of [{ thread: thread.threadId, resource: thread.resourceId }, undefined]) {
      const { post, model } = await open({ text: 'Let me see.', toolCalls: [{ toolName: 'weather', toolCallId: 'call-3', input: { city: 'Bern' } }] }, 'Sunny.')
      const asked = [{ role: 'user', content: 'Weather?' }]
      const { body } = await post('/agents/guide/generate', { messages: asked, clientTools, ...(memory ? { memory } : {}) })
      expect(body).toMatchObject({ finishReason: 'tool-calls', toolCalls: [{ type: 'tool-call', payload: { toolCallId: 'call-3', toolName: 'weather', args: { city: 'Bern' } } }] })
      const said = (body.response as { messages: unknown[] }).messages
      const answer = { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'call-3', toolName: 'weather', result: 'sun' }] }
      const { body: last } = await post('/agents/guide/generate', { messages: [...(memory ? [] : asked), ...said, answer], clientTools, ...(memory ? { memory } : {}) })
      expect(last.text).toBe('Sunny.')
      expect(model.calls[1]?.prompt.map(({ role }) => role)).toEqual(['system', ...(memory ? ['system'] : []), 'user', 'assistant', 'tool'])
      expect(model.calls[1]?.prompt.at(-1)).toMatchObject({ content: [{ type: 'tool-result', toolCallId: 'call-3', output: { value: 'sun' } }] })
    }
  })

  it('[H5.1] an agent is described with its tools and its model, and without its instructions', async () => {
    const { ask } = await open()
    const told = (await (await ask('/agents/guide')).json()) as { tools: Record<string, { inputSchema: string }> }
    expect(told).toMatchObject({ id: 'guide', name: 'guide', description: '', instructions: '', provider: 'scripted', modelId: 'scripted', modelVersion: 'v4', tools: { pay: { id: 'pay' } } })
    expect(JSON.parse(told.tools.pay?.inputSchema ?? '')).toMatchObject({ type: 'object', properties: { to: { type: 'string' } } })
    expect(await (await ask('/agents')).json()).toEqual({ guide: told })
    expect(JSON.stringify(told)).not.toContain('Keep this to yourself')
  })

  it('[H5.1] every path of theirs is there, and asks for what is missing', async () => {
    const { ask } = await open()
    const paths = [
      'send-message', 'queue-message', 'signals', 'threads/subscribe', 'threads/abort', 'send-tool-approval', 'approve-tool-call', 'decline-tool-call', 'approve-tool-call-generate',
      'decline-tool-call-generate', 'resume-stream', 'resume-stream-until-idle', 'stream', 'stream-until-idle', 'generate', 'observe', 'recover',
    ]
    for (const path of paths) expect([path, (await ask(`/agents/guide/${path}`, { json: {} })).status]).toEqual([path, 400])
    expect((await ask('/agents/guide/suspended-runs')).status).toBe(200)
    for (const path of ['/memory/threads', '/memory/status', '/memory/config?agentId=guide']) expect((await ask(path)).status).toBe(200)
  })
})

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { HeedEditor } from '../../src/editor/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel, type ScriptedStep } from '../../src/testing/index.ts'
import { served } from './serving.ts'
import { workflowDifferences } from './workflow-differences.ts'

const pay = createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' })
const fail = createTool({ id: 'fail', execute: async () => { throw new Error('db.internal does not answer') } })
const paying: ScriptedStep = { text: 'I pay.', toolCalls: [{ toolName: 'pay', input: {} }] }
const memory = { thread: 't', resource: 'user-1' }
const scope = { threadId: 't', resourceId: 'user-1' }
const keys = { one: 'the-key-of-one-user', two: 'the-key-of-two-user' }

interface Answer extends Record<string, unknown> {
  code?: string
  runId?: string
  instructions?: string
  guide: { instructions: string }
  config: { semanticRecall: unknown }
  messages: Array<{ content: object }>
  clonedMessages: unknown[]
}

/** A server, and its answers: the status, and the body as JSON or as the types of its chunks. */
async function open(script: Array<string | ScriptedStep> = [], { limited = false } = {}) {
  const agent = new Agent({ id: 'guide', model: scriptedModel(script), tools: { pay, fail }, instructions: 'Keep this to yourself.' })
  const auth = apiKeys({ [keys.one]: { id: 'one', resources: ['user-1'] }, [keys.two]: { id: 'two', resources: ['user-2'] } })
  const { ask } = await served({ guide: agent }, { ...(limited ? { auth } : {}), heed: { editor: new HeedEditor() } })
  const tell = async (path: string, json?: object, { method, as = 'one' }: { method?: string; as?: keyof typeof keys } = {}) => {
    const response = await ask(path, { ...(json ? { json } : {}), ...(method ? { method } : {}), headers: { authorization: `Bearer ${keys[as]}` } })
    const text = await response.text()
    const chunks = text.split('\n\n').filter((frame) => frame.startsWith('data: {')).map((frame) => JSON.parse(frame.slice(6)) as { type: string; runId: string; payload: Record<string, unknown> })
    return { status: response.status, body: (text.startsWith('{') ? JSON.parse(text) : {}) as Answer, chunks }
  }
  const refused = async (path: string, json?: object, more?: Parameters<typeof tell>[2]) => {
    const { status, body } = await tell(path, json, more)
    return [status, body.code] as const
  }
  return { agent, tell, refused }
}

/** A server with a run that its caller has scored. */
async function scored() {
  const { tell, refused } = await open(['Hi.'])
  const { runId = '' } = (await tell('/agents/guide/generate', { messages: 'Hello', memory })).body
  const score = { runId, scorerId: 'thumbs', score: 1 }
  expect((await tell('/scores', { score })).status).toBe(200)
  return { run: { tell, refused, runId, score } }
}

/** What the table says of each call, shown. */
const shown: Record<string, () => Promise<void>> = {
  '`generate` or `stream` without input': async () => {
    const { tell } = await open()
    for (const path of ['generate', 'stream']) expect((await tell(`/agents/guide/${path}`, { messages: [] })).status).toBe(400)
  },
  '`sendSignal` with an unsafe tag': async () => {
    const { tell } = await open()
    expect((await tell('/agents/guide/signals', { signal: { type: 'reactive', tagName: 'a b', contents: 'x' }, ...scope })).status).toBe(400)
  },
  '`sendMessage` with one text part': async () => {
    const { tell } = await open(['Hi.'])
    expect((await tell('/agents/guide/send-message', { message: [{ type: 'text', text: 'x' }], ...scope })).body).toMatchObject({ signal: { contents: 'x' } })
  },
  '`generate` or `stream` with `memory` or `resourceId`, without a thread': async () => {
    const { refused } = await open()
    for (const path of ['generate', 'stream', 'explain-prompt']) {
      for (const given of [{ memory: { resource: 'user-1' } }, { memory: { options: { lastMessages: 1 } } }, { resourceId: 'user-1' }])
        expect(await refused(`/agents/guide/${path}`, { messages: 'Hi', ...given })).toEqual([400, 'invalid_argument'])
    }
  },
  '`generate`, the model fails': async () => {
    const { refused } = await open([{ error: { status: 400, message: 'No.' } }])
    expect(await refused('/agents/guide/generate', { messages: 'Hi' })).toEqual([502, 'provider_error'])
  },
  '`stream`, the model fails': async () => {
    const { tell } = await open([{ error: { status: 400, message: 'No.' } }])
    expect((await tell('/agents/guide/stream', { messages: 'Hi' })).chunks.at(-1)?.type).toBe('error')
  },
  '`generate` with several steps': async () => {
    const { tell, agent } = await open([paying, 'Paid.'])
    const { body: { runId } } = await tell('/agents/guide/generate', { messages: 'Pay.', memory })
    expect((await tell('/agents/guide/approve-tool-call-generate', { runId })).body).toMatchObject({ text: 'Paid.' })
    expect(await agent.activeRun(scope)).toBeNull()
  },
  '`finish` and `step-finish` chunks': async () => {
    const { tell } = await open(['Hi.'])
    const { chunks } = await tell('/agents/guide/stream', { messages: 'Hi' })
    expect(Object.keys(chunks.at(-1)?.payload ?? {}).toSorted()).toEqual(['messageId', 'metadata', 'output', 'stepResult'])
    expect(chunks.at(-1)?.payload).toMatchObject({ stepResult: { reason: 'stop' }, output: { usage: { totalTokens: expect.any(Number) } } })
  },
  '`sendMessage` to a run that is not active': async () => {
    const { refused } = await open()
    expect(await refused('/agents/guide/send-message', { message: 'Hi', runId: 'none' })).toEqual([409, 'no_active_run'])
  },
  'a decision when nothing waits': async () => {
    const { refused } = await open()
    for (const path of ['approve-tool-call', 'decline-tool-call', 'approve-tool-call-generate', 'decline-tool-call-generate']) {
      expect(await refused(`/agents/guide/${path}`, { runId: 'none', toolCallId: 'x' }), path).toEqual([409, 'run_not_suspended'])
    }
    expect(await refused('/agents/guide/resume-stream', { runId: 'none', resumeData: {} })).toEqual([409, 'run_not_suspended'])
    expect(await refused('/agents/guide/send-tool-approval', { ...scope, toolCallId: 'x', approved: true })).toEqual([409, 'run_not_suspended'])
    expect(await refused('/agents/guide/send-stream-resume', { ...scope, toolCallId: 'x', resumeData: {} })).toEqual([409, 'run_not_suspended'])
  },
  'a decision with `requestContext`': async () => {
    const { tell } = await open([paying, 'Paid.'])
    const { body: { runId } } = await tell('/agents/guide/generate', { messages: 'Pay.', memory })
    expect((await tell('/agents/guide/approve-tool-call-generate', { runId, requestContext: { a: 1 } })).body).toMatchObject({ text: 'Paid.' })
  },
  '`sendToolApproval` with `streamOptions` and without messages': async () => {
    const { refused } = await open()
    const body = { ...scope, toolCallId: 'x', approved: true, streamOptions: { maxSteps: 1 } }
    expect(await refused('/agents/guide/send-tool-approval', body)).toEqual([400, 'invalid_argument'])
  },
  'a field or an option that Heed does not have': async () => {
    const { refused } = await open()
    for (const more of [{ ifIdle: { streamOptions: { scorers: {} } } }, { untilIdle: true }, { message: { contents: 'Hi', name: 'Ada' } }]) {
      expect(await refused('/agents/guide/send-message', { message: 'Hi', ...scope, ...more })).toEqual([400, 'invalid_argument'])
    }
    for (const path of ['generate', 'stream']) expect(await refused(`/agents/guide/${path}`, { messages: 'Hi', scorers: {} })).toEqual([400, 'invalid_argument'])
    expect(await refused('/agents/guide/resume-stream', { runId: 'r', resumeData: {}, maxSteps: 3 })).toEqual([400, 'invalid_argument'])
    expect(await refused('/agents/guide/recover', { runId: 'r', versions: {} })).toEqual([400, 'invalid_argument'])
    expect(await refused('/memory/threads', { ...scope, name: 'Trip' })).toEqual([400, 'invalid_argument'])
  },
  '`tracingOptions` of `generate`, `stream` or `ifIdle.streamOptions`': async () => {
    const { tell } = await open(['Hi.', 'Hi.', 'Hi.'])
    const tracingOptions = { metadata: {} }
    expect((await tell('/agents/guide/send-message', { message: 'Hi', ...scope, ifIdle: { streamOptions: { tracingOptions } } })).body).toMatchObject({ accepted: true })
    for (const path of ['generate', 'stream']) expect((await tell(`/agents/guide/${path}`, { messages: 'Hi', tracingOptions })).status).toBe(200)
  },
  '`resourceId` of `/memory/status` and `/memory/config`': async () => {
    const { tell } = await open([], { limited: true })
    for (const path of ['status', 'config']) expect((await tell(`/memory/${path}?resourceId=user-2`)).body).toEqual((await tell(`/memory/${path}`)).body)
  },
  '`includeSystemReminders` of a list of messages': async () => {
    const { tell } = await open(['Hi.'])
    await tell('/agents/guide/generate', { messages: 'Hi', memory })
    const list = async (query: string) => (await tell(`/memory/threads/t/messages?resourceId=user-1${query}`)).body
    expect(await list('&includeSystemReminders=false')).toEqual(await list(''))
  },
  "`messageId` of the AI SDK's `DefaultChatTransport`": async () => {
    const { tell, agent } = await open(['Hi.'])
    const messages = [{ id: 'm-1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }]
    expect((await tell('/agents/guide/chat', { id: 't', resourceId: 'user-1', messages, trigger: 'submit-message', messageId: 'm-1' })).status).toBe(200)
    expect((await (await agent.getMemory()).recall({ ...scope, perPage: false })).messages[0]?.id).toBe('m-1')
  },
  '`clientTools`, fields besides `description`, `inputSchema` and `parameters`': async () => {
    const { tell } = await open(['Hi.'])
    const look = { id: 'look', description: 'Looks', inputSchema: { type: 'object', properties: {} }, outputSchema: { type: 'object', properties: {} } }
    expect((await tell('/agents/guide/generate', { messages: 'Hi', clientTools: { look } })).body).toMatchObject({ text: 'Hi.' })
  },
  '`ifIdle.streamOptions` with the behavior `persist` or `discard`': async () => {
    const { refused } = await open()
    for (const behavior of ['persist', 'discard']) {
      const body = { message: 'Hi', ...scope, ifIdle: { behavior, streamOptions: { maxSteps: 1 } } }
      expect(await refused('/agents/guide/send-message', body)).toEqual([400, 'invalid_argument'])
    }
  },
  '`listSuspendedRuns`, runs without a thread': async () => {
    const { tell } = await open([paying])
    expect((await tell('/agents/guide/generate', { messages: 'Pay.' })).body).toMatchObject({ finishReason: 'suspended' })
    expect((await tell('/agents/guide/suspended-runs')).body).toEqual({ runs: [], total: 0 })
  },
  '`observe` of a run that is not active': async () => {
    const { refused } = await open()
    expect(await refused('/agents/guide/observe', { runId: 'none' })).toEqual([409, 'no_active_run'])
  },
  '`recover` of an unknown run': async () => {
    const { refused } = await open()
    expect(await refused('/agents/guide/recover', { runId: 'none' })).toEqual([409, 'no_active_run'])
  },
  'a thread of another resource': async () => {
    const { tell } = await open(['Hi.'], { limited: true })
    await tell('/agents/guide/generate', { messages: 'Hi', memory })
    expect((await tell('/memory/threads/t', undefined, { as: 'two' })).status).toBe(404)
    expect((await tell('/agents/guide/threads/t/queue', undefined, { as: 'two' })).body).toEqual({ queued: [] })
    expect((await tell('/agents/guide/send-message', { message: 'Hi', threadId: 't' }, { as: 'two' })).status).toBe(403)
  },
  '`listMessages` of a thread that does not exist yet': async () => {
    const { tell } = await open()
    const { status, body } = await tell('/memory/threads/none/messages?resourceId=user-1')
    expect([status, body.messages]).toEqual([200, []])
  },
  'an id that the thread uses for something else': async () => {
    const { tell, refused, agent } = await open(['Hi.'])
    await tell('/agents/guide/generate', { messages: 'Hello', memory })
    const [, answer] = (await (await agent.getMemory()).recall({ ...scope, perPage: false })).messages
    expect(await refused('/agents/guide/send-message', { message: { id: answer?.id, contents: 'Hi' }, ...scope })).toEqual([409, 'id_taken'])
  },
  'a thread without metadata': async () => {
    const { tell } = await open()
    expect((await tell('/memory/threads', scope)).body).toMatchObject({ metadata: {} })
  },
  '`thread.delete` of an unknown thread': async () => {
    const { tell } = await open()
    expect((await tell('/memory/threads/none?resourceId=user-1', undefined, { method: 'DELETE' })).status).toBe(200)
  },
  '`deleteMessages` with an id of several threads': async () => {
    const { tell, agent } = await open(['Hi.', 'Hi.'])
    for (const threadId of ['t', 'u']) await agent.generate({ id: 'same', role: 'user', content: 'Hi' } as never, { memory: { thread: threadId, resource: 'user-1' } })
    expect((await tell('/memory/messages/delete', { messageIds: ['same'] })).status).toBe(400)
    expect((await (await agent.getMemory()).recall({ ...scope, perPage: false })).messages).toHaveLength(2)
  },
  '`generate` with options that the agent does not allow': async () => {
    const { refused } = await open([], { limited: true })
    expect(await refused('/agents/guide/generate', { messages: 'Hi', maxSteps: 1000 })).toEqual([403, 'forbidden'])
  },
  '`generate` with a message of the role `system`': async () => {
    const { refused } = await open([], { limited: true })
    expect(await refused('/agents/guide/generate', { messages: [{ role: 'system', content: 'Obey.' }, { role: 'user', content: 'Hi' }] })).toEqual([403, 'forbidden'])
  },
  '`runId` of a limited principal': async () => {
    const { refused } = await open([], { limited: true })
    expect(await refused('/agents/guide/generate', { messages: 'Hi', runId: 'r' })).toEqual([403, 'forbidden'])
  },
  'the error of a tool, for principals that are no operators': async () => {
    const { tell } = await open([{ toolCalls: [{ toolName: 'fail', input: {} }] }, 'Sorry.'], { limited: true })
    const { body } = await tell('/agents/guide/generate', { messages: 'Hi' })
    expect([body.text, JSON.stringify(body).includes('tool_failed'), JSON.stringify(body).includes('db.internal')]).toEqual(['Sorry.', true, false])
  },
  '`requestContext` of a limited principal': async () => {
    const { tell, agent } = await open(['Hi.'], { limited: true })
    expect((await tell('/agents/guide/generate', { messages: 'Hi', requestContext: { admin: true }, memory })).status).toBe(200)
    const runtime = agent.threads()
    expect(JSON.stringify(await runtime.store.listRuns({ threadId: 't' }))).not.toContain('admin')
  },
  '`saveMessageToMemory` with the role `system`': async () => {
    const { tell } = await open([], { limited: true })
    await tell('/memory/threads', { threadId: 't' })
    const message = { id: 'm', role: 'system', createdAt: new Date(0).toISOString(), threadId: 't', resourceId: 'user-1', content: { format: 2, parts: [{ type: 'text', text: 'x' }] } }
    expect((await tell('/memory/save-messages', { messages: [message] })).status).toBe(403)
  },
  '`listMessages`': async () => {
    const { tell } = await open(['Hi.'])
    await tell('/agents/guide/generate', { messages: 'Hello', memory })
    const { messages } = (await tell('/memory/threads/t/messages?resourceId=user-1')).body
    expect(messages[0]?.content).toMatchObject({ parts: [{ type: 'text', text: 'Hello' }] })
    expect(messages[0]?.content).not.toHaveProperty('content')
  },
  '`thread.clone`': async () => {
    const { tell } = await open(['Hi.'])
    await tell('/agents/guide/generate', { messages: 'Hello', memory })
    const { status, body } = await tell('/memory/threads/t/clone?resourceId=user-1', { newThreadId: 'u' })
    expect([status, 'messageIdMap' in body, body.clonedMessages.length]).toEqual([200, false, 2])
  },
  '`getMemoryConfig`': async () => {
    const { tell } = await open()
    expect((await tell('/memory/config')).body.config.semanticRecall).toMatchObject({ topK: expect.any(Number) })
  },
  '`details`, `listAgents`': async () => {
    const { tell } = await open()
    expect([(await tell('/agents/guide')).body.instructions, (await tell('/agents')).body.guide.instructions]).toEqual(['', ''])
    // What they display of a tool they find, also by itself.
    expect((await tell('/agents/guide/tools/pay')).body).toMatchObject({ id: 'pay', requireApproval: true, inputSchema: expect.any(String) })
    expect((await tell('/agents/guide/tools/none')).status).toBe(404)
  },
  ...workflowDifferences,
  '`executeTool`': async () => {
    const { tell } = await open()
    expect((await tell('/agents/guide/tools/pay/execute', { data: {} })).status).toBe(404)
  },
  '`network`, `generateLegacy`, `streamLegacy`': async () => {
    const { tell } = await open()
    for (const path of ['network', 'generate-legacy', 'stream-legacy']) expect((await tell(`/agents/guide/${path}`, { messages: 'Hi' })).status, path).toBe(404)
  },
  '`updateModel`, `resetModel`, `reorderModelList`, `enhanceInstructions`': async () => {
    const { tell } = await open()
    for (const path of ['model', 'model/reset', 'models/reorder', 'instructions/enhance']) expect((await tell(`/agents/guide/${path}`, {})).status, path).toBe(404)
  },
  '`listScoresBy…`': async () => {
    const { run } = await scored()
    const { body } = await run.tell(`/scores/run/${run.runId}`)
    expect(body).toMatchObject({ pagination: { total: 1 }, scores: [{ runId: run.runId, threadId: 't', scorer: { id: 'thumbs', version: '1' }, entity: { id: 'guide' } }] })
    expect(JSON.stringify(body)).not.toMatch(/"(input|output)"/)
  },
  '`listScoresByEntityId` with `TRAJECTORY`; with `WORKFLOW`': async () => {
    const { refused } = await open()
    expect(await refused('/scores/entity/TRAJECTORY/guide')).toEqual([400, 'invalid_argument'])
    // Scores of steps: test/http/existing-scores.test.ts.
    expect(await refused('/scores/entity/WORKFLOW/none')).toEqual([404, 'unknown_workflow'])
  },
  '`listScoresBy…` of an unknown agent or workflow, `getScorer` of an unknown scorer': async () => {
    const { refused } = await open()
    expect(await refused('/scores/entity/AGENT/none')).toEqual([404, 'unknown_agent'])
    expect(await refused('/scores/scorer/x?entityType=WORKFLOW&entityId=none')).toEqual([404, 'unknown_workflow'])
    expect(await refused('/scores/scorers/none')).toEqual([404, 'unknown_scorer'])
  },
  '`saveScore` of a run that is not stored': async () => {
    const { refused } = await open()
    expect(await refused('/scores', { score: { runId: 'none', scorerId: 'thumbs', score: 1 } })).toEqual([404, 'not_found'])
  },
  '`saveScore` by the same principal again': async () => {
    const { run } = await scored()
    expect((await run.tell('/scores', { score: { ...run.score, score: 0 } })).status).toBe(200)
    expect((await run.tell(`/scores/run/${run.runId}`)).body).toMatchObject({ pagination: { total: 1 }, scores: [{ score: 0 }] })
  },
  '`input`, `output`, `scorer` and `entity` of `saveScore`': async () => {
    const { run } = await scored()
    const { status, body } = await run.tell('/scores', { score: { ...run.score, input: ['x'], output: 'x', scorer: { id: 'x' }, entity: { id: 'x' } } })
    expect([status, body]).toMatchObject([200, { score: { scorer: { id: 'thumbs' }, entity: { id: 'guide' } } }])
  },
  'other fields of `saveScore`: prompts, results of stages': async () => {
    const { run } = await scored()
    expect(await run.refused('/scores', { score: { ...run.score, analyzeStepResult: {} } })).toEqual([400, 'invalid_argument'])
  },
  '`createStoredAgent`': async () => {
    const { tell } = await open()
    expect((await tell('/stored/agents', { id: 'guide', instructions: 'x' })).body).toMatchObject({ status: 'draft' })
    expect((await tell('/stored/agents', { id: 'other', instructions: 'x' })).status).toBe(404)
  },
  '`storedAgent.delete`, `deleteVersion` of what runs get': async () => {
    const { tell, refused } = await open()
    await tell('/stored/agents', { id: 'guide', instructions: 'x', autoPublish: true })
    for (const path of ['/stored/agents/guide', '/stored/agents/guide/versions/1']) expect(await refused(path, undefined, { method: 'DELETE' })).toEqual([409, 'edit_in_use'])
  },
  'fields of a stored agent besides `instructions` and `tools`': async () => {
    const { tell, refused } = await open()
    expect((await tell('/stored/agents', { id: 'guide', name: 'Other', instructions: 'x' })).body).toMatchObject({ stripped: ['name'] })
    expect(await refused('/stored/agents/guide', { memory: {} }, { method: 'PATCH' })).toEqual([400, 'invalid_argument'])
  },
  '`storedAgent.export`, `dependents`, `favorite`, `openChangeRequest`': async () => {
    const { tell } = await open()
    for (const path of ['export', 'dependents', 'favorite', 'change-request']) expect((await tell(`/stored/agents/guide/${path}`, {})).status, path).toBe(404)
  },
  '`listTools`, `getSystemPackages`': async () => {
    const { tell } = await open()
    for (const path of ['/tools', '/system/packages']) expect((await tell(path)).status, path).toBe(404)
  },
}

const page = readFileSync(new URL('../../docs/server.md', import.meta.url), 'utf8')
const rows = page.slice(page.indexOf('## Existing clients')).split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| call '))
const calls = rows.map((row) => row.split(' | ')[0]?.slice(2) ?? '')

describe('the calls of existing clients that differ, as docs/server.md lists them', () => {
  it('[H5.3] are those of this test', () => {
    expect(calls).toEqual(Object.keys(shown))
  })

  it.each(Object.entries(shown))('[H5.3] %s', (_call, show) => show())
})

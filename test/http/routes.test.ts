import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Agent, createTool, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served, thread } from './serving.ts'

const { resourceId, threadId } = thread
const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({ to: z.string() }), execute: () => 'paid' })
const ask = createTool({ id: 'ask', inputSchema: z.object({}), suspendSchema: z.object({}), resumeSchema: z.object({ yes: z.boolean() }), execute: (_input, { resumeData, suspend }) => (resumeData ? 'answered' : suspend({})) })

/** What the agent does is what its last message says. */
const model = () => scriptedModel(({ options: { prompt } }) => {
  const said = JSON.stringify(prompt.at(-1))
  if (said.includes('Pay')) return { toolCalls: [{ toolName: 'pay', input: { to: 'Ada' } }] }
  return said.includes('Ask') ? { toolCalls: [{ toolName: 'ask', input: {} }] } : 'Hello.'
})

type World = Awaited<ReturnType<typeof world>>

/** A thread with a turn on it, and one on which a run waits for a decision. */
async function world(waiting?: string) {
  const agent = new Agent({ id: 'guide', model: model(), tools: { pay, ask }, memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }) })
  const { ask: http } = await served({ guide: agent })
  await agent.generate('Hi', { memory: { thread: threadId, resource: resourceId } })
  if (waiting === undefined) return { http, agent, runId: 'none', toolCallId: 'none' }
  await agent.generate(waiting, { memory: { thread: threadId, resource: resourceId } })
  const { runs } = await agent.listSuspendedRuns(thread)
  return { http, agent, runId: runs[0]?.runId ?? '', toolCallId: runs[0]?.toolCalls[0]?.toolCallId ?? '' }
}

interface Row {
  route: string
  /** The calls that are pending approval. */
  waiting?: string
  query?: string
  body?: (world: World) => object
  /** Until when a stream is read; without it, to its end. */
  until?: string
}

const agentId = 'agentId=guide'
const memory = { thread: threadId, resource: resourceId }
const saved = { id: 'm1', role: 'user', createdAt: '2020-01-01T00:00:00Z', ...thread, content: { format: 2, parts: [{ type: 'text', text: 'One' }] } }
const decision = ({ runId, toolCallId }: World) => ({ runId, toolCallId, requestContext: {} })
const resumption = ({ runId, toolCallId }: World) => ({ runId, toolCallId, resumeData: { yes: true } })

/** Everything that existing clients ask for, as they ask for it. */
const rows: Row[] = [
  { route: 'GET /agents' },
  { route: 'GET /agents/{agentId}' },
  { route: 'POST /agents/{agentId}/send-message', body: () => ({ message: 'Hi', ...thread, ifActive: { behavior: 'deliver' }, ifIdle: { behavior: 'wake', streamOptions: { maxSteps: 1 } } }) },
  { route: 'POST /agents/{agentId}/queue-message', body: () => ({ message: { contents: 'Hi', attributes: { from: 'Ada' } }, ...thread }) },
  { route: 'POST /agents/{agentId}/signals', body: () => ({ signal: { type: 'user-message', contents: 'Hi' }, ...thread }) },
  { route: 'POST /agents/{agentId}/threads/subscribe', body: () => thread, until: ': connected' },
  { route: 'POST /agents/{agentId}/threads/abort', body: () => ({ ...thread, expectedRunId: 'none' }) },
  { route: 'GET /agents/{agentId}/suspended-runs', waiting: 'Pay', query: `threadId=${threadId}&resourceId=${resourceId}&fromDate=2020-01-01T00:00:00Z&page=0&perPage=10` },
  { route: 'POST /agents/{agentId}/send-tool-approval', waiting: 'Pay', body: ({ toolCallId }) => ({ ...thread, toolCallId, approved: true }) },
  { route: 'POST /agents/{agentId}/approve-tool-call', waiting: 'Pay', body: decision },
  { route: 'POST /agents/{agentId}/decline-tool-call', waiting: 'Pay', body: (world) => ({ ...decision(world), reason: 'No.' }) },
  { route: 'POST /agents/{agentId}/approve-tool-call-generate', waiting: 'Pay', body: decision },
  { route: 'POST /agents/{agentId}/decline-tool-call-generate', waiting: 'Pay', body: decision },
  { route: 'POST /agents/{agentId}/resume-stream', waiting: 'Ask', body: resumption },
  { route: 'POST /agents/{agentId}/resume-stream-until-idle', waiting: 'Ask', body: resumption },
  { route: 'POST /agents/{agentId}/stream', body: () => ({ messages: [{ role: 'user', content: 'Hi' }], memory }) },
  { route: 'POST /agents/{agentId}/stream-until-idle', body: () => ({ messages: 'Hi', memory }) },
  { route: 'POST /agents/{agentId}/generate', body: () => ({ messages: 'Hi', memory }) },
  { route: 'POST /agents/{agentId}/observe', waiting: 'Pay', body: ({ runId }) => ({ runId, offset: 0 }), until: ': connected' },
  { route: 'POST /agents/{agentId}/recover', waiting: 'Pay', body: ({ runId }) => ({ runId }), until: ': connected' },
  { route: 'GET /memory/threads', query: `${agentId}&resourceId=${resourceId}&metadata=${encodeURIComponent('{}')}&page=0&perPage=10&orderBy[field]=createdAt&orderBy[direction]=DESC` },
  { route: 'POST /memory/threads', query: agentId, body: () => ({ resourceId, threadId: 'new', title: 'New', metadata: { kind: 'trip' } }) },
  { route: 'GET /memory/threads/{threadId}', query: agentId },
  { route: 'PATCH /memory/threads/{threadId}', query: agentId, body: () => ({ title: 'Other', metadata: { far: true }, resourceId }) },
  { route: 'DELETE /memory/threads/{threadId}', query: agentId },
  { route: 'GET /memory/threads/{threadId}/messages', query: `${agentId}&resourceId=${resourceId}&page=0&perPage=40&includeSystemReminders=true` },
  { route: 'POST /memory/messages/delete', query: agentId, body: () => ({ messageIds: ['none'] }) },
  { route: 'POST /memory/save-messages', query: agentId, body: () => ({ messages: [saved] }) },
  { route: 'POST /memory/threads/{threadId}/clone', query: agentId, body: () => ({ newThreadId: 'copy', resourceId, options: { messageLimit: 1 } }) },
  { route: 'POST /memory/threads/{threadId}/transfer', query: agentId, body: () => ({ resourceId: 'user-2' }) },
  { route: 'GET /memory/threads/{threadId}/working-memory', query: `${agentId}&resourceId=${resourceId}` },
  { route: 'POST /memory/threads/{threadId}/working-memory', query: agentId, body: () => ({ workingMemory: '# Ada', resourceId }) },
  { route: 'GET /memory/search', query: `${agentId}&resourceId=${resourceId}&threadId=${threadId}&searchQuery=Hi&limit=5` },
  { route: 'GET /events', query: `${agentId}&resourceId=${resourceId}`, until: ': connected' },
  { route: 'GET /memory/config', query: agentId },
  { route: 'GET /memory/status', query: agentId },
]

interface Operation {
  responses: { 200: { content: Record<string, { schema?: object }> } }
}

/** Up to the first text, or to the end. */
async function read(response: Response, until: string | undefined): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (!done) text += value
    if (!done && (until === undefined || !text.includes(until))) continue
    await reader?.cancel()
    return text
  }
}

describe('every route that existing clients know', () => {
  it.each(rows.map((row) => [row.route, row] as const))('[H5.2] %s is listed, and answers as it is listed', async (route, { waiting, query, body, until }) => {
    const made = await world(waiting)
    const [method = '', path = ''] = route.split(' ')
    const { paths } = (await (await made.http('/openapi.json')).json()) as { paths: Record<string, Record<string, Operation>> }
    const listed = paths[`/api${path}`]?.[method.toLowerCase()]?.responses[200].content ?? {}
    const url = `${path.replace('{agentId}', 'guide').replace('{threadId}', threadId)}${query === undefined ? '' : `?${query}`}`
    const response = await made.http(url, { method, ...(body ? { body: JSON.stringify(body(made)), headers: { 'content-type': 'application/json' } } : {}) })
    const text = await read(response, until)
    expect([response.status, text]).toEqual([200, text])
    const type = response.headers.get('content-type')?.split(';')[0] ?? ''
    expect(Object.keys(listed)).toEqual([type])
    if (type === 'text/event-stream') {
      expect(text).toMatch(/^: connected\n\n(?:data: \{.*\}\n\n)*(?:data: \[DONE\]\n\n)?$/)
      if (until === undefined) expect(text).toMatch(/"type":"finish".*\n\ndata: \[DONE\]\n\n$/)
      else expect(text).toContain(until)
      return
    }
    const schema = listed[type]?.schema
    expect(schema, 'its answer is listed').toBeDefined()
    const check = new Ajv({ allErrors: true, strict: false }).compile(schema ?? {})
    check(JSON.parse(text))
    expect(check.errors ?? [], text).toEqual([])
  })

  it('[H5.2] observation of threads is not supported, and is refused by name', async () => {
    const { http } = await world()
    const refused = await http(`/memory/observational-memory?${agentId}&resourceId=${resourceId}`)
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'unsupported_option' }])
  })

  it('[H5.2] the document lists every route, each once, with what it takes', async () => {
    const { http } = await world()
    const { paths, openapi } = (await (await http('/openapi.json')).json()) as { openapi: string; paths: Record<string, Record<string, { operationId: string; parameters: Array<{ in: string; name: string }>; requestBody?: object }>> }
    expect(openapi).toBe('3.1.0')
    const operations = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))
    expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length)
    for (const { path, method, operation } of operations) {
      const inPath = operation.parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => `{${name}}`)
      expect(inPath, path).toEqual(path.match(/\{\w+\}/g) ?? [])
      if (method === 'get' || method === 'delete') expect(operation.requestBody, path).toBeUndefined()
      // What is listed is there: asked with another method than its own, it names its own.
      const allowed = await http(path.slice('/api'.length).replaceAll(/\{\w+\}/g, 'x'), { method: 'PUT' })
      expect([path, allowed.status, ((await allowed.json()) as { error: string }).error]).toEqual([path, 405, expect.stringContaining(method.toUpperCase()) as string])
    }
  })
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { apiKeys, createHandler, principalScopes, type HandlerOptions, type Principal } from '../../src/http/server.ts'
import { Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { virtualClock } from '../../src/testing/index.ts'
import { createStep, createWorkflow, type WorkflowChunk } from '../../src/workflow/index.ts'

const number = z.object({ n: z.number() })
const add = createStep({ id: 'add', inputSchema: number, outputSchema: number, execute: ({ inputData, writer }) => (writer.write('adding'), { n: inputData.n + 1 }) })
const ask = createStep({
  id: 'ask', inputSchema: number, outputSchema: number, resumeSchema: number,
  execute: ({ inputData, resumeData, suspend }) => (resumeData ? { n: inputData.n + resumeData.n } : suspend({ question: 'How much?' }, { resumeLabel: 'much' })),
})
const last = createStep({ id: 'last', inputSchema: number, outputSchema: number, execute: ({ inputData, requestContext }) => ({ n: inputData.n + ((requestContext.get('extra') as number | undefined) ?? 0) }) })
const inner = createWorkflow({ id: 'inner', inputSchema: number, outputSchema: number }).then(ask).commit()
const each = createStep({ id: 'each', inputSchema: z.number(), resumeSchema: number, execute: ({ inputData, resumeData, suspend }) => (resumeData ? inputData + resumeData.n : suspend({})) })

function workflows() {
  return {
    sums: createWorkflow({ id: 'sums', inputSchema: number, outputSchema: number }).then(add).then(ask).then(last).commit(),
    nested: createWorkflow({ id: 'nested', inputSchema: number, outputSchema: number }).then(add).then(inner).commit(),
    list: createWorkflow({ id: 'list', inputSchema: z.array(z.number()) }).foreach(each, { concurrency: 2 }).commit(),
    sleeps: createWorkflow({ id: 'sleeps', inputSchema: number, outputSchema: number }).then(add).sleep(3_600_000).commit(),
  }
}

const principals: Record<string, Omit<Principal, 'id'>> = {
  ada: { resources: ['ada'], scopes: principalScopes.tenant },
  bob: { resources: ['bob'], scopes: principalScopes.tenant },
  both: { resources: ['ada', 'bob'], scopes: principalScopes.tenant },
  user: { resources: ['ada'], scopes: principalScopes.endUser },
  blind: { resources: ['ada'], scopes: ['run', 'approve'] },
  operator: { resources: '*', scopes: principalScopes.operator },
}
const keyOf = (name: string) => `key-of-${name}-0000000000`

interface Answer extends Record<string, unknown> {
  code?: string
  runId?: string
  status?: unknown
  details?: Record<string, unknown>
}

interface Opened {
  storage?: InMemoryStore | LibSQLStore
  options?: HandlerOptions
  clock?: ReturnType<typeof virtualClock>
}

/** A server, and its answers to requests as existing clients write them: no `Accept`, and no body where they have none. */
function open({ storage = new InMemoryStore(), options, clock }: Opened = {}) {
  const heed = new Heed({ workflows: workflows(), storage, logger: silentLogger, ...(clock ? { clock } : {}) })
  const auth = apiKeys(Object.fromEntries(Object.entries(principals).map(([id, principal]) => [keyOf(id), { id, ...principal }])))
  const handler = createHandler(heed, { auth, ...options })
  const close = async () => {
    handler.close()
    await heed.close()
  }
  onTestFinished(close)
  const ask = (as: string, method: string, path: string, body?: object, more: { headers?: Record<string, string>; signal?: AbortSignal } = {}) => handler(new Request(`http://localhost/api/workflows${path}`, {
    method, headers: { authorization: `Bearer ${keyOf(as)}`, ...(body ? { 'content-type': 'application/json' } : {}), ...more.headers },
    ...(body ? { body: JSON.stringify(body) } : {}), ...(more.signal ? { signal: more.signal } : {}),
  }))
  const tell = async (as: string, method: string, path: string, body?: object): Promise<Answer & { http: number }> => {
    const response = await ask(as, method, path, body)
    return { ...(await response.json() as Answer), http: response.status }
  }
  const post = (path: string, body?: object) => tell('ada', 'POST', path, body)
  const read = (path: string) => tell('ada', 'GET', path)
  /** The chunks of a stream, until one is as wanted. */
  const chunks = async (path: string, body?: object, until: (chunk: WorkflowChunk) => boolean = () => false, as = 'ada') => {
    const found: WorkflowChunk[] = []
    for await (const chunk of records(await ask(as, 'POST', path, body))) {
      found.push(chunk)
      if (until(chunk)) break
    }
    return found
  }
  const reaches = async (path: string, status: string) => {
    await expect.poll(async () => (await read(path)).status).toBe(status)
  }
  return { heed, ask, tell, post, read, chunks, reaches, close }
}

/** JSON records, each followed by the byte 0x1E. */
async function* records(response: Response): AsyncGenerator<WorkflowChunk> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const bytes of response.body as ReadableStream<Uint8Array>) {
    rest += decoder.decode(bytes, { stream: true })
    const parts = rest.split('\u001E')
    rest = parts.pop() ?? ''
    for (const part of parts) if (part !== '') yield JSON.parse(part) as WorkflowChunk
  }
  expect(rest).toBe('')
}

const types = (chunks: WorkflowChunk[]) => chunks.map(({ type }) => type)
const isFinish = ({ type }: WorkflowChunk) => type === 'workflow-finish'

describe('runs of workflows, as existing clients ask for them', () => {
  it('[F6.6] start, answer and begin again as the calls of a run do, without waiting', async () => {
    const { post, read, reaches } = open()
    const { runId = '' } = await post('/sums/create-run?', {})
    expect(await post(`/sums/start?runId=${runId}`, { inputData: { n: 1 } })).toMatchObject({ http: 200, runId, message: expect.any(String) })
    await reaches(`/sums/runs/${runId}`, 'suspended')
    expect(await read(`/sums/runs/${runId}`)).toMatchObject({
      workflowName: 'sums', resourceId: 'ada', payload: { n: 1 }, activeStepsPath: { ask: [1] }, serializedStepGraph: [{ id: 'add' }, { id: 'ask' }, { id: 'last' }],
      createdAt: expect.stringMatching(/Z$/), steps: { add: { output: { n: 2 } }, ask: { suspendPayload: { question: 'How much?' } } },
    })
    expect(await post(`/sums/resume?runId=${runId}`, { step: ['ask'], resumeData: { n: 5 } })).toMatchObject({ http: 200, runId, message: expect.any(String) })
    await reaches(`/sums/runs/${runId}`, 'success')
    expect(await post(`/sums/resume-no-wait?runId=${runId}`, { step: 'ask', resumeData: { n: 5 } })).toMatchObject({ http: 409, code: 'run_not_suspended' })
    expect(await post(`/sums/resume?runId=${runId}`, { step: 'ask', resumeData: { n: 5 }, perhaps: true })).toMatchObject({ http: 400, code: 'invalid_argument' })
    const { runId: again } = await post(`/sums/time-travel?runId=${runId}`, { step: 'last', inputData: { n: 10 }, requestContext: { extra: 1 } })
    expect(again).not.toBe(runId)
    await reaches(`/sums/runs/${again}`, 'success')
    expect(await read(`/sums/runs/${again}?fields=result&withNestedWorkflows=false`)).toEqual({
      http: 200, runId: again, status: 'success', workflowName: 'sums', resourceId: 'ada', createdAt: expect.any(String), updatedAt: expect.any(String), result: { n: 10 },
    })
    expect(await read(`/sums/runs/${runId}`)).toMatchObject({ result: { n: 7 } })
  })

  it('[F6.6] wait for the result, which names suspended steps by their ids', async () => {
    const { post } = open()
    const asked = await post('/sums/start-async?runId=r1', { inputData: { n: 1 } })
    expect(asked).toMatchObject({ http: 200, status: 'suspended', suspended: [['ask']], suspendPayload: { ask: { question: 'How much?' } }, resumeLabels: { much: { stepId: 'ask', path: '1' } } })
    expect(await post('/sums/resume-async?runId=r1', { step: ['ask'], resumeData: { n: 5 } })).toMatchObject({ status: 'success', result: { n: 7 }, steps: { last: { output: { n: 7 } } } })
    expect(await post('/sums/time-travel-async?runId=r1', { step: ['last'], inputData: { n: 20 } })).toMatchObject({ status: 'success', result: { n: 20 } })
    // Within a workflow, and in a list.
    expect(await post('/nested/start-async?runId=r2', { inputData: { n: 1 } })).toMatchObject({ suspended: [['inner', 'ask']], suspendPayload: { 'inner.ask': {} } })
    expect(await post('/nested/resume-async?runId=r2', { step: 'inner', resumeData: { n: 5 } })).toMatchObject({ result: { n: 7 } })
    expect(await post('/list/start-async?runId=r3', { inputData: [10, 20] })).toMatchObject({ suspended: [['each'], ['each']] })
    expect(await post('/list/resume-async?runId=r3', { step: 'each', resumeData: { n: 1 } })).toMatchObject({ http: 400, code: 'invalid_argument' })
    expect(await post('/list/resume-async?runId=r3', { step: 'each', forEachIndex: 7, resumeData: { n: 1 } })).toMatchObject({ http: 409, code: 'run_not_suspended' })
    expect(await post('/list/resume-async?runId=r3', { step: 'each', forEachIndex: 1, resumeData: { n: 1 } })).toMatchObject({ status: 'suspended' })
    expect(await post('/list/resume-async?runId=r3', { forEachIndex: 0, resumeData: { n: 2 } })).toMatchObject({ result: [12, 21] })
  })

  it('[F6.6] go on one step at a time, and begin again with what steps before and within others gave', async () => {
    const { post, chunks } = open()
    expect(await post('/sums/start-async?runId=r1', { inputData: { n: 1 }, perStep: true })).toMatchObject({ status: 'paused', steps: { add: { output: { n: 2 } } } })
    expect(types(await chunks('/sums/observe?runId=r1', undefined, ({ type }) => type === 'workflow-paused')).at(-1)).toBe('workflow-paused')
    const given = { add: { status: 'success', payload: { n: 0 }, output: { n: 100 } } }
    expect(await post('/sums/time-travel-async?runId=r1', { step: 'ask', context: given, inputData: { n: 100 }, resumeData: { n: 7 } })).toMatchObject({ status: 'success', result: { n: 107 } })
    expect(await post('/sums/resume-async?runId=r1', {})).toMatchObject({ status: 'suspended' })
    await post('/nested/start-async?runId=r2', { inputData: { n: 1 } })
    await post('/nested/resume-async?runId=r2', { step: ['inner', 'ask'], resumeData: { n: 1 } })
    const nestedStepsContext = { inner: { ask: { status: 'success', output: { n: 50 } } } }
    expect(await post('/nested/time-travel-async?runId=r2', { step: 'add', nestedStepsContext })).toMatchObject({ http: 400, error: expect.stringContaining('inner.ask') })
    const streamed = chunks('/sums/stream?runId=r3', { inputData: { n: 1 }, closeOnSuspend: false })
    await expect.poll(async () => (await post('/sums/resume?runId=r3', { resumeData: { n: 1 } })).http).toBe(200)
    expect((await streamed).at(-1)).toMatchObject({ type: 'workflow-finish', payload: { workflowStatus: 'success' } })
  })

  it('[F6.6] a call that waits ends with its caller, and the run goes on', async () => {
    const { ask, read, reaches, tell } = open()
    const leaving = new AbortController()
    const waiting = ask('ada', 'POST', '/sleeps/start-async?runId=r1', { inputData: { n: 1 } }, { signal: leaving.signal })
    await reaches('/sleeps/runs/r1', 'waiting')
    leaving.abort(new Error('gone'))
    expect(await (await waiting).json()).toMatchObject({ code: 'aborted' })
    expect(await read('/sleeps/runs/r1')).toMatchObject({ status: 'waiting' })
    // As a client cancels it: without a body, and without a type.
    expect(await tell('ada', 'POST', '/sleeps/runs/r1/cancel')).toMatchObject({ http: 200, message: expect.any(String) })
    await reaches('/sleeps/runs/r1', 'canceled')
  })

  it('[F6.7] a run that was created is pending, keeps its resource, and is its own alone', async () => {
    const { tell, post, reaches } = open()
    expect(await tell('operator', 'POST', '/sums/create-run?runId=r1', { resourceId: 'ada' })).toMatchObject({ runId: 'r1' })
    expect(await tell('ada', 'GET', '/sums/runs/r1')).toMatchObject({ status: 'pending', resourceId: 'ada', steps: {} })
    expect(await tell('bob', 'GET', '/sums/runs/r1')).toMatchObject({ http: 404, code: 'not_found' })
    expect(await tell('bob', 'POST', '/sums/create-run?runId=r1', {})).toMatchObject({ http: 403, code: 'thread_forbidden' })
    expect(await tell('bob', 'POST', '/sums/start-async?runId=r1', { inputData: { n: 1 } })).toMatchObject({ http: 403, code: 'thread_forbidden' })
    // The request does not say whose it is.
    await tell('operator', 'POST', '/sums/start?runId=r1', { inputData: { n: 1 } })
    await reaches('/sums/runs/r1', 'suspended')
    expect(await post('/sums/create-run?runId=r1', {})).toMatchObject({ http: 200, runId: 'r1' })
    expect(await tell('both', 'POST', '/sums/resume-async?runId=r1', { resumeData: { n: 1 } })).toMatchObject({ status: 'success' })
    expect(await tell('both', 'POST', '/sums/create-run?runId=r2', {})).toMatchObject({ http: 400, details: { field: 'resourceId' } })
    for (const path of ['resume', 'resume-no-wait', 'resume-async', 'resume-stream', 'restart', 'restart-async', 'time-travel', 'time-travel-async', 'time-travel-stream', 'observe']) {
      const body = path === 'observe' ? undefined : path.startsWith('time') ? { step: 'last' } : {}
      const [foreign, unknown] = await Promise.all(['r1', 'none'].map((runId) => tell('bob', 'POST', `/sums/${path}?runId=${runId}`, body)))
      expect([path, foreign?.http, unknown?.http]).toEqual([path, 404, 404])
    }
    expect(await tell('user', 'POST', '/sums/resume?runId=r1', {})).toMatchObject({ http: 403, details: { scope: 'approve' } })
    expect(await tell('blind', 'POST', '/sums/resume-async?runId=r1', {})).toMatchObject({ http: 403, details: { scope: 'read' } })
    expect(await tell('blind', 'POST', '/sums/start-async?runId=r1', {})).toMatchObject({ http: 403, details: { scope: 'read' } })
    const page = await tell('operator', 'GET', '/sums/runs?resourceId=ada&limit=1&offset=0')
    expect(page).toMatchObject({ total: 1, runs: [{ runId: 'r1', workflowName: 'sums', snapshot: { runId: 'r1', status: 'success', timestamp: expect.any(Number) } }] })
    expect(await tell('operator', 'GET', '/sums/runs?limit=2&offset=1')).toMatchObject({ http: 400, details: { field: 'offset' } })
    expect(await tell('operator', 'GET', '/sums/runs?limit=2&page=1')).toMatchObject({ http: 400, details: { field: 'limit' } })
  })

  it('[F6.8] streams are records, each followed by 0x1E, and server-sent events where the request accepts them', async () => {
    const { ask, chunks, post } = open()
    const first = await chunks('/sums/stream?runId=r1', { inputData: { n: 1 } })
    expect(types(first)).toEqual(['workflow-start', 'workflow-step-start', 'workflow-step-output', 'workflow-step-result', 'workflow-step-finish', 'workflow-step-start', 'workflow-step-suspended', 'workflow-suspended'])
    expect(first.every(({ runId, from }) => runId === 'r1' && from === 'WORKFLOW')).toBe(true)
    const rest = await chunks('/sums/resume-stream?runId=r1', { step: 'ask', resumeData: { n: 5 } })
    expect(rest.at(-1)).toMatchObject({ type: 'workflow-finish', payload: { workflowStatus: 'success', finalWorkflowResult: { n: 7 } } })
    const again = await chunks('/sums/time-travel-stream?runId=r1', { step: 'last', inputData: { n: 30 } })
    expect(types(again)).toEqual(['workflow-start', 'workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-finish'])
    expect(again[0]?.runId).not.toBe('r1')
    expect(await post('/sums/resume-stream?runId=r1', {})).toMatchObject({ http: 409, code: 'run_not_suspended' })
    expect(await post('/sums/time-travel-stream?runId=r1', { step: 'none' })).toMatchObject({ http: 400 })
    const raw = await ask('ada', 'POST', '/sums/observe?runId=r1')
    expect([raw.status, raw.headers.get('content-type'), raw.headers.get('x-accel-buffering')]).toEqual([200, 'text/plain; charset=utf-8', 'no'])
    expect(await raw.text()).toMatch(/^\{"type":"workflow-start"[^\u001E]*\u001E(\{[^\u001E]*\u001E)+$/)
    const events = await ask('ada', 'POST', '/sums/observe?runId=r1', undefined, { headers: { accept: 'text/event-stream' } })
    expect(events.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(await events.text()).toMatch(/^: connected\n\n[^]*data: \{"type":"workflow-start"[^]*data: \[DONE\]\n\n$/)
  })

  it('[F6.8] silence is filled with empty records, and a stream of records counts as one of events does', async () => {
    const clock = virtualClock()
    const { ask, post } = open({ clock, options: { heartbeatMs: 1_000, stallMs: 5_000 } })
    await post('/sums/start-async?runId=r1', { inputData: { n: 1 } })
    const reader = (await ask('ada', 'POST', '/sums/observe?runId=r1')).body?.getReader()
    let text = ''
    while (!text.includes('workflow-suspended')) text += new TextDecoder().decode((await reader?.read())?.value)
    const next = reader?.read()
    await clock.advance(1_000)
    expect([...((await next)?.value ?? [])]).toEqual([0x1E])
    await reader?.cancel()
    const limited = open({ options: { limits: { streamsPerPrincipal: 1 } } })
    await limited.post('/sums/start-async?runId=r1', { inputData: { n: 1 } })
    const held = await limited.ask('ada', 'POST', '/sums/observe?runId=r1')
    expect(await limited.post('/sums/stream?runId=r2', { inputData: { n: 1 } })).toMatchObject({ http: 429, code: 'rate_limited' })
    await held.body?.cancel()
  })

  it('[F6.9] observe gives a run from its start, or behind an offset, for readers that come before and after its end', async () => {
    const { ask, chunks, post } = open()
    const first = await chunks('/sums/stream?runId=r1', { inputData: { n: 1 } })
    const [all, some] = [records(await ask('ada', 'POST', '/sums/observe?runId=r1')), records(await ask('ada', 'POST', '/sums/observe?runId=r1&offset=6'))]
    await post('/sums/resume?runId=r1', { step: 'ask', resumeData: { n: 5 } })
    const [whole, part] = await Promise.all([all, some].map(async (one) => {
      const found: WorkflowChunk[] = []
      for await (const chunk of one) found.push(chunk)
      return found
    }))
    expect(whole?.slice(0, first.length)).toEqual(first)
    expect(whole?.at(-1)).toMatchObject({ type: 'workflow-finish', payload: { workflowStatus: 'success' } })
    expect(part).toEqual(whole?.slice(6))
  })

  it('[F6.9] in a later process, what the rows tell stands for chunks that are gone: nothing is missed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heed-observe-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = { url: `file:${join(folder, 'runs.db')}` }
    const one = open({ storage: new LibSQLStore(file) })
    await one.post('/nested/start-async?runId=r1', { inputData: { n: 1 } })
    const live = await one.chunks('/nested/observe?runId=r1', undefined, ({ type }) => type === 'workflow-suspended')
    await one.close()
    const two = open({ storage: new LibSQLStore(file) })
    const watching = two.chunks('/nested/observe?runId=r1', undefined, isFinish)
    const behind = two.chunks('/nested/observe?runId=r1&offset=4', undefined, isFinish)
    await two.post('/nested/resume?runId=r1', { step: ['inner', 'ask'], resumeData: { n: 5 } })
    const [all, some] = await Promise.all([watching, behind])
    expect(types(all).slice(0, 7)).toEqual(types(live).filter((type) => type !== 'workflow-step-output').slice(0, 7))
    expect(all[2]).toMatchObject({ type: 'workflow-step-result', payload: { id: 'add', stepCallId: '0', status: 'success', output: { n: 2 } } })
    // An offset counts chunks that are gone: all of them come again.
    expect(types(some)[0]).toBe('workflow-start')
    expect(all.at(-1)).toMatchObject({ payload: { workflowStatus: 'success', finalWorkflowResult: { n: 7 } } })
    await two.close()
    const three = open({ storage: new LibSQLStore(file) })
    const after = await three.chunks('/nested/observe?runId=r1', undefined, isFinish)
    expect(types(after)).toEqual([
      'workflow-start', 'workflow-step-start', 'workflow-step-result', 'workflow-step-finish', 'workflow-step-start', 'workflow-step-suspended', 'workflow-step-start', 'workflow-step-result',
      'workflow-step-finish', 'workflow-finish',
    ])
  })

  it('[F6.10] a restart leaves alone what goes on by itself, and counts of what runs and is suspended are of the caller', async () => {
    const { tell, post, reaches } = open()
    await post('/sleeps/start?runId=r1', { inputData: { n: 1 } })
    await reaches('/sleeps/runs/r1', 'waiting')
    expect(await post('/sleeps/restart?runId=r1', {})).toMatchObject({ http: 200, runId: 'r1' })
    await tell('bob', 'POST', '/sums/start-async?runId=b1', { inputData: { n: 1 } })
    for (const runId of ['s1', 's2']) await post(`/sums/start-async?runId=${runId}`, { inputData: { n: 1 } })
    for (const path of ['restart', 'restart-async']) expect(await post(`/sums/${path}?runId=s1`, {})).toMatchObject({ http: 409, code: 'run_not_parked' })
    const none = { running: 0, suspended: 0 }
    expect(await tell('ada', 'GET', '/run-counts')).toEqual({ http: 200, sums: { running: 0, suspended: 2 }, nested: none, list: none, sleeps: none })
    expect((await tell('operator', 'GET', '/run-counts')).sums).toEqual({ running: 0, suspended: 3 })
    expect(await tell('operator', 'GET', '?partial=true')).toMatchObject({ sums: { id: 'sums', name: 'sums', stepCount: 3 } })
    expect((await tell('operator', 'GET', '?partial=true')).sums).not.toHaveProperty('steps')
    const { steps, allSteps, stepGraph } = await tell('ada', 'GET', '/nested')
    expect([steps, allSteps, stepGraph]).toMatchObject([{ inner: { isWorkflow: true } }, { 'inner.ask': { resumeSchema: expect.stringContaining('"n"') } }, [{ id: 'add' }, { id: 'inner' }]])
  })

  it('[H5.11] routes that are left out are answered by a code that says so', async () => {
    const { tell } = open()
    for (const path of ['/sums/restart-all-active-workflow-runs', '/sums/restart-all-active-workflow-runs-async', '/sums/runs/r1/steps/execute', '/events', '/sums/stream-legacy', '/sums/observe-stream-legacy'])
      expect([path, await tell('ada', 'POST', path, {})]).toMatchObject([path, { http: 404, code: 'unsupported_route', error: expect.stringMatching(/^There is no route \/workflows\/.+ here\. .{20}/) }])
    expect(await tell('ada', 'POST', '/sums/nothing', {})).toMatchObject({ http: 404, code: 'not_found' })
    expect(await tell('ada', 'GET', '/sums/start')).toMatchObject({ http: 405 })
  })

  it('[H3.17] a request without JSON is rejected from a page of another origin', async () => {
    const { ask, post } = open()
    await post('/sleeps/start?runId=r1', { inputData: { n: 1 } })
    for (const path of ['/sleeps/runs/r1/cancel', '/sleeps/observe?runId=r1']) {
      expect((await ask('ada', 'POST', path, undefined, { headers: { origin: 'https://evil.example' } })).status, path).toBe(403)
    }
    expect((await ask('ada', 'POST', '/sleeps/runs/r1/cancel', undefined, { headers: { 'content-type': 'text/plain' } })).status).toBe(415)
    expect((await ask('ada', 'POST', '/sleeps/runs/r1/cancel', undefined, { headers: { origin: 'http://localhost', host: 'localhost' } })).status).toBe(200)
  })
})

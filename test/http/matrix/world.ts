import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { expect } from 'vitest'
import { HeedEditor } from '../../../src/editor/index.ts'
import { createHandler, apiKeys, principalScopes, type Principal } from '../../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { createStep, createWorkflow } from '../../../src/workflow/index.ts'
import { CompositeVoice } from '../../../src/voice/index.ts'
import { request, type Names } from '../every-route.ts'
import { soon } from '../../thread/said.ts'
import { soundOf, toneSpeech, toneTranscription } from '../../voice/voices.ts'

export type Operation = Parameters<typeof request>[2]

const pay = createTool({ id: 'pay', requireApproval: true, inputSchema: z.object({ to: z.string() }), execute: () => 'paid' })
const ask = createTool({ id: 'ask', inputSchema: z.object({}), suspendSchema: z.object({}), resumeSchema: z.object({}), execute: (_input, { resumeData, suspend }) => (resumeData ? 'answered' : suspend({})) })

/** A workflow that asks, then waits for an event. */
const asking = () => createWorkflow({ id: 'asking' })
  .then(createStep({ id: 'ask', execute: ({ resumeData, suspend }) => (resumeData === undefined ? suspend('?') : resumeData) }))
  .waitForEvent('paid').commit()

/** What the agent does is what the last user said. */
const model = () => scriptedModel(({ options: { prompt, responseFormat } }) => {
  if (responseFormat?.type === 'json') return '{}'
  if (prompt.some(({ role }) => role === 'tool')) return 'Done.'
  const said = JSON.stringify(prompt.findLast((message) => message.role === 'user' && /Pay|Ask/.test(JSON.stringify(message))) ?? '')
  if (said.includes('Pay')) return { toolCalls: [{ toolName: 'pay', input: { to: 'Ada' } }] }
  return said.includes('Ask') ? { toolCalls: [{ toolName: 'ask', input: {} }] } : 'Hello.'
})

/** Principals by the name of their key. Alice has what is asked for. */
const principals: Record<string, Omit<Principal, 'id'>> = {
  'end user': { resources: ['alice'], scopes: principalScopes.endUser },
  'other end user': { resources: ['bob'], scopes: principalScopes.endUser },
  tenant: { resources: ['alice'], scopes: principalScopes.tenant },
  'other tenant': { resources: ['bob'], scopes: principalScopes.tenant },
  operator: { resources: '*', scopes: principalScopes.operator },
  ...Object.fromEntries(principalScopes.operator.flatMap((scope) => [
    [`only ${scope}`, { resources: ['alice'], scopes: [scope] }],
    [`without ${scope}`, { resources: ['alice'], scopes: principalScopes.operator.filter((one) => one !== scope) }],
  ])),
}

const keyOf = (who: string) => `key of ${who} 0000000000000`.replaceAll(' ', '-')

export interface Told {
  status: number
  code?: string
  details?: Record<string, unknown>
}

/** A server whose threads have something of everything. */
export class Matrix {
  readonly #heed: Heed<Record<string, Agent>, { asking: ReturnType<typeof asking> }>
  readonly #agent: Agent
  readonly #handler: ReturnType<typeof createHandler>

  constructor() {
    this.#agent = new Agent({
      id: 'guide', model: model(), tools: { pay, ask }, notifications: { deliveryPolicy: { default: 'persist', priorities: { medium: 'persist' } } },
      memory: new Memory({ semanticRecall: false, workingMemory: { enabled: true, scope: 'thread' } }),
      voice: new CompositeVoice({ input: toneTranscription(), output: toneSpeech() }),
    })
    this.#heed = new Heed({ agents: { guide: this.#agent }, workflows: { asking: asking() }, storage: new InMemoryStore(), logger: silentLogger, editor: new HeedEditor() })
    const auth = apiKeys(Object.fromEntries(Object.entries(principals).map(([id, principal]) => [keyOf(id), { id, ...principal }])))
    this.#handler = createHandler(this.#heed, { auth, limits: { requests: false } })
  }

  async close(): Promise<void> {
    this.#handler.close()
    await this.#heed.close()
  }

  /** A thread of Alice on which a run waits, with a queue behind it. */
  async furnish(threadId: string, waiting: 'Pay' | 'Ask' | undefined, whole = true, needsRun = false): Promise<Names> {
    const agent = this.#agent
    const scope = { threadId, resourceId: 'alice' }
    await agent.sendMessage({ contents: 'Hi', id: `${threadId}-sent` }, scope).outcome
    await soon(() => agent.activeRun(scope)).toBeNull()
    const notificationId = whole ? await this.#furnishWhole(scope) : 'none'
    if (waiting) {
      await agent.generate(waiting, { memory: { thread: threadId, resource: 'alice' } })
      await agent.queueMessage({ contents: 'Later.', id: `${threadId}-q` }, scope).stored
    }
    if (needsRun) {
      const run = this.#heed.getWorkflow('asking').createRun({ runId: threadId, resourceId: 'alice' })
      await run.start({ inputData: {} })
      // It came early: a run that is resumed ends.
      await run.sendEvent('paid', undefined, { id: 'early' })
    }
    const { runs: [run] } = await agent.listSuspendedRuns(scope)
    return {
      ...scope, runId: run?.runId ?? 'none', toolCallId: run?.toolCalls[0]?.toolCallId ?? 'none', notificationId, scheduleId: `${threadId}-s`,
      watchId: `${threadId}-w`, workflowId: 'asking', workflowRunId: threadId, laneId: 'lane', signalId: `${threadId}-sent`, toolId: 'pay',
    }
  }

  async #furnishWhole(scope: { threadId: string; resourceId: string }): Promise<string> {
    const { threadId } = scope
    const agent = this.#agent
    const { record } = await agent.sendNotificationSignal({ source: 'mail', kind: 'new', summary: 'x' }, scope)
    await agent.schedule({ ...scope, id: `${threadId}-s`, cron: '0 0 1 1 *', message: 'Look.' })
    await agent.awaitSignal({ description: 'A letter.', expected_channels: ['sms'] }, { ...scope, id: `${threadId}-w` })
    await agent.sendStateSignal({ id: 'lane', cacheKey: 'k', contents: 'x' }, { ...scope, ifIdle: { behavior: 'persist' } })
    const memory = await agent.getMemory()
    for (const workingMemory of ['# One', '# Two']) await memory.updateWorkingMemory({ ...scope, workingMemory })
    return record.id
  }

  async ask(who: string | undefined, url: string, init: { method: string; body?: string; headers: Record<string, string> }): Promise<Told> {
    const headers: Record<string, string> = { ...init.headers, ...(who === undefined ? {} : { authorization: `Bearer ${keyOf(who)}` }) }
    const sound = headers['content-type'] === 'audio/wav' ? { body: soundOf('Hi'), headers: { ...headers, 'content-type': 'audio/pcm;rate=24000' } } : { headers }
    const response = await this.#handler(new Request(`http://localhost/api${url}`, { ...init, ...sound }))
    if (!response.headers.get('content-type')?.startsWith('application/json')) {
      await response.body?.cancel()
      return { status: response.status }
    }
    const { code, details } = (await response.json()) as { code?: string; details?: Record<string, unknown> }
    return { status: response.status, ...(response.status >= 400 && { ...(code !== undefined && { code }), ...(details && { details }) }) }
  }
}

/** What a route needs so that its answer says whether it may be asked. */
export function waitingFor(path: string): 'Pay' | 'Ask' | undefined {
  if (path.startsWith('/api/workflows')) return undefined
  if (path.includes('resume')) return 'Ask'
  return /approv|decline|queue|observe|recover|active-run|suspended|chat\/\{|\/scores$/.test(path) ? 'Pay' : undefined
}

/** Whether a request is about a run of a workflow. */
export const needsRun = (path: string): boolean => /workflows\/\{workflowId\}\/(runs\/\{|resume|restart|time-travel|observe)/.test(path)

/** Whether a route is about what a thread has beside its messages. */
export function needsAll(path: string): boolean {
  return /schedules|watches|notifications|lanes|working-memory/.test(path)
}

/** The request to a route that is right in everything. */
export function requestTo(path: string, method: string, operation: Operation, names: Names): ReturnType<typeof request> {
  const { url, init } = request(path, method, operation, names)
  if (!init.body) return { url, init }
  const chat = path.endsWith('/chat') ? { id: names.threadId, messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }] } : {}
  const state = path.endsWith('/state-signals') ? { state: { stateId: 'lane', cacheKey: 'k2', contents: 'x' } } : {}
  const saved = path.endsWith('/save-messages') ? { messages: [{ id: 'saved', role: 'user', createdAt: '2020-01-01T00:00:00Z', threadId: names.threadId, resourceId: names.resourceId, content: { format: 2, parts: [{ type: 'text', text: 'x' }] } }] } : {}
  const changed = path.endsWith('/messages/update') ? { messages: [{ id: names.signalId, content: { metadata: { read: true } } }] } : {}
  const workflow = path.startsWith('/api/workflows/') ? { ...(path.endsWith('/events') ? { name: 'paid' } : {}), ...(/\/time-travel[a-z-]*$/.test(path) ? { step: 'ask' } : {}), ...(/\/resume[a-z-]*$/.test(path) ? { resumeData: 1 } : {}) } : {}
  const spoken = path.endsWith('/speak') ? { text: 'Hi' } : {}
  const body: Record<string, unknown> = { ...(JSON.parse(init.body) as object), ...workflow, ...chat, ...state, ...saved, ...changed, ...spoken }
  if (!/tool-call|resume-stream|observe|recover/.test(path)) delete body.runId
  for (const name of ['signalIds', 'messageIds', 'ids']) if (Array.isArray(body[name])) body[name] = [name === 'ids' ? names.notificationId : names.signalId]
  return { url, init: { ...init, body: JSON.stringify(body) } }
}

/** Columns of equal width. */
export function table(rows: ReadonlyArray<readonly string[]>): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return `${rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd()).join('\n')}\n`
}

/** Compares with the table in the tree. HEED_WRITE_TABLES=1 writes it: read the difference before you commit it. */
export function expectTable(file: URL, text: string): void {
  if (process.env.HEED_WRITE_TABLES === '1') writeFileSync(file, text)
  expect(text).toBe(existsSync(file) ? readFileSync(file, 'utf8') : '')
}

import { HeedEditor } from '../../../src/editor/index.ts'
import { createHandler } from '../../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore, Memory, silentLogger } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { CompositeVoice } from '../../../src/voice/index.ts'
import { createStep, createWorkflow } from '../../../src/workflow/index.ts'
import { toneSpeech, toneTranscription } from '../../voice/voices.ts'
import type { Heard } from './heard.ts'
import { valueOf, withField, type Field, type Route } from './requests.ts'

/** A handler of an agent that has everything, and what was given to the model and to the context. */
export async function fieldWorld(heard: Heard) {
  const model = scriptedModel(({ options }) => {
    heard.note({ ...options })
    return JSON.stringify(options.prompt.at(-1)).includes('Pay, please.') ? { toolCalls: [{ toolName: 'pay', toolCallId: 'call-1', input: {} }] } : 'Fine.'
  }, { loop: true })
  const pay = createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' })
  const speech = toneSpeech({ onCall: (call) => heard.note({ ...call }) })
  const agent = new Agent({
    id: 'guide', model, tools: { pay }, memory: new Memory({ workingMemory: { enabled: true, scope: 'thread' } }), watches: true,
    voice: new CompositeVoice({ input: toneTranscription(), output: speech }), instructions: ({ requestContext }) => (heard.note(requestContext), 'You help.'),
  })
  const step = createStep({ id: 'ask', execute: ({ requestContext }) => (heard.note(requestContext), 'done') })
  const asking = createWorkflow({ id: 'asking' }).then(step).commit()
  const storage = new InMemoryStore()
  const heed = new Heed({ agents: { guide: agent }, workflows: { asking }, storage, editor: new HeedEditor(), logger: silentLogger })
  await heed.start()
  const memory = await agent.getMemory()
  /** What a request to a route is about: its thread, and where the route decides about a call, a call that waits. */
  const prepare = async (route: Route): Promise<Names> => {
    const at = { threadId: `thread-${++count}`, resourceId: 'user-1' }
    if (route.path.startsWith('/api/stored/agents/') && (await heed.getEditor().listVersions('guide')).versions.length === 0) {
      await heed.getEditor().save('guide', { base: 0, instructions: 'Edited.', by: 'ann' })
    }
    if (route.path.startsWith('/api/workflows/') && route.required.includes('runId')) {
      // What a query has to have has the value of no field.
      await asking.createRun({ runId: 'mark0', resourceId: at.resourceId }).start()
      return at
    }
    if (!decides.test(route.path)) {
      await memory.createThread(at)
      return at
    }
    const { runId } = await agent.generate('Pay, please.', { memory: { thread: at.threadId, resource: at.resourceId } })
    return { ...at, runId, toolCallId: 'call-1' }
  }
  return { heed, storage, agent, prepare, handler: createHandler(heed, { auth: 'local' }) }
}

type Names = Record<string, string>
const decides = /tool-call|tool-approval|resume-stream|stream-resume/
let count = 0

const always: Names = { agentId: 'guide', workflowId: 'asking', runId: 'run-1', version: '1', step: '0', blockId: 'tone', toolId: 'pay', entityType: 'AGENT', entityId: 'guide' }

/** What a route needs besides the fields that its schema requires. */
const samples: Record<string, unknown> = {
  message: 'Hi', messages: 'Hi', signal: { type: 'reactive', contents: 'x' }, state: { id: 'lane-1', cacheKey: 'k', contents: 'x' }, approved: true, resumeData: {}, signalIds: ['s'], messageIds: ['m'],
  workingMemory: 'x', status: 'archived', base: 0, overrides: { instructions: 'Edited.' }, expected: 0, version: 0,
}
const more = ({ threadId, resourceId }: Names): Record<string, Record<string, unknown>> => ({
  '/notifications': { notification: { source: 'x', kind: 'x', summary: 'x' } }, '/schedules': { cron: '0 0 * * *', message: 'x' }, '/watches': { watch: { description: 'x', expected_channels: ['sms'] } },
  '/chat': { id: threadId, messages: [{ id: 'm-1', role: 'user', parts: [{ type: 'text', text: 'x' }] }] },
  '/stored/agents': { id: 'guide' },
  '/save-messages': { messages: [{ role: 'user', content: 'x', threadId, resourceId }] }, '/speak': { text: 'x' }, '/messages/update': { messages: [{ id: 'm-1', content: { content: 'x' } }] },
  '/generate': running(threadId, resourceId), '/stream': running(threadId, resourceId), '/stream-until-idle': running(threadId, resourceId), '/explain-prompt': running(threadId, resourceId),
})
const running = (thread: string | undefined, resource: string | undefined) => ({ memory: { thread, resource } })

/** A request of a route with one field of a value that is found again. */
export function requestWith(route: Route, field: Field, mark: number, about: Names): Request {
  const names = { ...always, ...about }
  const value = field.name === 'readMessages' ? false : valueOf(field.schema, mark)
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? 'x')
  const search = new URLSearchParams(route.required.map((name) => [name, String(valueOf(route.query[name] ?? {}, 0))]))
  for (const name of ['resourceId', 'agentId']) if (name in route.query) search.set(name, names[name] ?? '')
  const inQuery = field.name.startsWith('?')
  if (inQuery) search.set(field.path[0] ?? '', queryOf(field.path[0] ?? '', value, mark))
  const properties = Object.keys(route.body?.properties ?? {})
  const scoped = properties.includes('memory') ? [] : ['threadId', 'resourceId'].filter((name) => properties.includes(name) && !(name in route.query))
  const ending = path.startsWith('/api/workflows') ? {} : Object.entries(more(names)).find(([one]) => path.endsWith(one))?.[1]
  const needed = Object.fromEntries((route.body?.required ?? []).map((name) => [name, samples[name] ?? names[name] ?? valueOf(route.body?.properties?.[name] ?? {}, 0)]))
  const pair = field.path[0] === 'streamOptions' ? { messages: 'Hi' } : field.name === 'threadId' && properties.includes('memory') ? { resourceId: 'user-1' } : field.name === 'approvalId' ? { digest: 'x' } : field.name === 'digest' ? { approvalId: 'x' } : {}
  const decided = decides.test(route.path) ? pick(names, ['runId', 'toolCallId'].filter((name) => properties.includes(name))) : {}
  const own = route.body && without({ ...needed, ...pick(names, scoped), ...decided, ...pair, ...ending }, instead[field.path[0] ?? ''])
  const body = !route.body || inQuery ? own : withField(own, route.body, field.path, value)
  return new Request(`http://localhost${path}?${search}`, {
    method: route.method, ...(body ? { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } } : {}),
  })
}

function queryOf(name: string, value: unknown, mark: number): string {
  if (name === 'requestContext') return Buffer.from(JSON.stringify({ [`mark${mark}`]: 1 })).toString('base64')
  if (Array.isArray(value)) return typeof value[0] === 'string' ? value[0] : JSON.stringify(value)
  return typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Fields in whose place another one is given. */
const instead: Record<string, string> = { notifications: 'notification', signal: 'message', input: 'text', every: 'cron', at: 'cron', threadId: 'memory', resourceId: 'memory' }
const without = (from: Record<string, unknown>, name: string | undefined) => Object.fromEntries(Object.entries(from).filter(([key]) => key !== name))

const pick = (from: Record<string, unknown>, some: readonly string[]) => Object.fromEntries(some.filter((name) => name in from).map((name) => [name, from[name]]))

import { expect, it } from 'vitest'
import type { JSONSchema } from '../../../src/http/route.ts'
import { runOptions } from '../../../src/http/schema/schemas.ts'
import { document, routes } from '../../openapi/document.ts'
import type { Names } from '../every-route.ts'
import { expectTable, Matrix, needsAll, needsRun, requestTo, table, waitingFor, type Operation, type Told } from './world.ts'

const { paths } = document as unknown as { paths: Record<string, Record<string, Operation & { requestBody?: { content: { 'application/json'?: { schema: JSONSchema } } } }>> }

/** Every option of a body by its path, with those of objects in it. Items of lists, and what a message or watch consists of, are no options. */
function optionsOf(schema: JSONSchema, prefix = ''): Array<[string, JSONSchema]> {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JSONSchema>)
  return properties.flatMap(([name, inner]) => {
    const path = `${prefix}${name}`
    // Where the document leaves them open, they are the options of a run nevertheless.
    const known = name === 'streamOptions' && !inner.properties ? { properties: runOptions } : inner
    const more = content.has(name) ? [] : optionsOf(known, `${path}.`)
    // The headers of a model's settings have a right of their own.
    return [[path, inner] as [string, JSONSchema], ...more, ...(name === 'modelSettings' ? [[`${path}.headers`, inner] as [string, JSONSchema]] : [])]
  })
}

const content = new Set(['message', 'messages', 'signal', 'state', 'watch', 'notification', 'notifications', 'score'])

/** Values that are right, by the name of the option. */
const samples: Record<string, unknown> = {
  tracingOptions: {}, messageId: 'm-1',
  maxSteps: 3, toolChoice: 'auto', activeTools: ['pay'], modelSettings: { temperature: 0 }, headers: { authorization: 'x' }, providerOptions: { openai: { previousResponseId: 'x' } },
  requestContext: { tier: 'gold' }, instructions: 'Obey.', system: 'Obey.', structuredOutput: { schema: { type: 'object', properties: {} } }, schema: { type: 'object' }, requireToolApproval: false,
  clientTools: { look: { description: 'x', inputSchema: { type: 'object', properties: {} } } }, jsonPromptInjection: true, name: 'x', description: 'x', metadata: { a: 1 }, title: 'x',
  lastMessages: 3, semanticRecall: false, readOnly: true, save: true, attributes: { from: 'x' }, options: {}, memory: {}, ifActive: {}, ifIdle: {}, streamOptions: {}, declineContext: {},
  reason: 'x', format: 'chunks', at: '2099-01-01T00:00:00Z', every: 3_600_000, timeZone: 'Europe/Berlin', overlap: 'skip', missed: 'skip', readMessages: true, clearPendingSignals: true,
  runId: 'run-1', snapshot: true, inbox: true, watches: true, offset: 0, trigger: 'submit-message', queue: false, replace: true, delete: [], limit: 5, timeoutMs: 10, expectedVersion: 2, version: 1, agentVersion: 0, why: 'x', rules: [], to: 0, base: 0, expected: 0, overrides: { instructions: 'x' }, drafts: true, as: 'mood', content: 'x',
  text: 'Hi', input: 'Hi', speakerId: 'ann', speaker: 'ann', language: 'en', speed: 1, type: 'audio/pcm', rate: 24_000,
  model: 'x', tools: {}, changeMessage: 'x', autoPublish: false, scorerId: 'thumbs', score: 1, source: 'test', scorer: {}, entity: {}, output: 'Hi', by: 'ann', state: 'failed', workflowId: 'w', before: 5, stepId: 's',
}

/** Options that decide what the request is about: the request of the matrix has them, and `routes.txt` says who may. */
const addressing = new Set([
  'threadId', 'resourceId', 'runId', 'id', 'agentId', 'ids', 'signalIds', 'messageIds', 'toolCallId', 'approvalId', 'digest', 'newThreadId', 'newRunId', 'expectedRunId', 'thread', 'resource', 'after',
])

function set(body: Record<string, unknown>, path: string, value: unknown): void {
  const [first = '', ...rest] = path.split('.')
  if (rest.length === 0) {
    body[first] = value
    return
  }
  const inner = { ...(typeof body[first] === 'object' ? (body[first] as Record<string, unknown>) : {}) }
  // Options of structured output are nothing without its schema.
  if (first === 'structuredOutput') inner.schema ??= samples.schema
  // So is the rate of a sound without its type.
  if (first === 'format') inner.type ??= samples.type
  set(inner, rest.join('.'), value)
  body[first] = inner
}

/** How a request with an option is answered, where the same without it is answered with `base`. */
function cell({ status, code, details }: Told, base: Told): string {
  if (details?.scope !== undefined) return `no scope ${String(details.scope)}`
  if (details?.option !== undefined) return `refused: ${String(details.option)}`
  if (status === base.status) return 'accepted'
  return `${status} ${code} ${String(details?.field ?? details?.option ?? '')}`.trim()
}

const callers = ['end user', 'tenant', 'operator']

it('[H8.2] every option of every call is accepted or refused by name as the table says: options.txt', { timeout: 600_000 }, async () => {
  const rows: string[][] = []
  for (const route of routes) {
    const path = `/api${route.path.replaceAll(/:(\w+)/g, '{$1}')}`
    const method = route.method.toLowerCase()
    const operation = paths[path]?.[method]
    const schema = operation?.requestBody?.content['application/json']?.schema
    // Those that wait for the end of a run of a workflow, or stream it, take what the route takes that does not.
    if (!operation || !schema || /^\/workflows\/.*-(?:async|stream|no-wait)$/.test(route.path)) continue
    for (const [option] of optionsOf(schema)) {
      const name = option.split('.').at(-1) ?? ''
      // The id of a run that the request begins is an option of that run.
      const isChosen = name === 'runId' && (option.endsWith('streamOptions.runId') || 'memory' in (schema.properties as object))
      if (!isChosen && (addressing.has(option) || addressing.has(name) || content.has(option))) {
        rows.push([`${route.method} ${route.path}`, option, '= routes.txt', '= routes.txt', '= routes.txt'])
        continue
      }
      expect(Object.keys(samples).concat(Object.keys(bySchema)), `${route.path}: a sample of ${option}`).toContain(name)
      const cells = await Promise.all(callers.map((who) => ask(who, method, path, operation, option, sampleOf(name, path) ?? (samples[name] ?? bySchema[name]))))
      rows.push([`${route.method} ${route.path}`, option, ...cells])
    }
  }
  expect(rows.length).toBeGreaterThan(150)
  expectTable(new URL('options.txt', import.meta.url), table([['call', 'option', ...callers], ...rows]))
})

/** Names that mean something else on some routes. */
function sampleOf(name: string, path: string): unknown {
  if (name === 'version' && path === '/api/scores') return '2'
  if (name === 'format' && path.endsWith('/speak')) return { type: samples.type }
  if (name === 'rules' && path.includes('/prompt-blocks')) return { operator: 'AND', conditions: [{ field: 'plan', operator: 'exists' }] }
  return undefined
}

/** Of fields that are required or have no effect on an agent. */
const bySchema: Record<string, unknown> = {
  approved: true, resumeData: {}, inputData: {}, initialState: {}, step: 'ask', label: 'ask', perStep: false, closeOnSuspend: true, nestedStepsContext: {}, forEachIndex: 0, context: {}, data: {}, cron: '0 0 * * *', status: 'seen', workingMemory: '# Three', behavior: 'deliver', message: 'x', contents: 'x',
}

async function ask(who: string, method: string, path: string, operation: Operation, option: string, sample: unknown): Promise<string> {
  const world = await shared(waitingFor(path))
  const value = sample === samples.runId ? `run-${world.count++}` : option === 'resumeData' && path.startsWith('/api/workflows') ? 1 : sample
  const send = async (change: (body: Record<string, unknown>) => void): Promise<Told> => {
    const place = `${who} ${method} ${path}`
    const names: Names = world.unchanged.get(place) ?? (await world.matrix.furnish(`t${world.count++}`, waitingFor(path), needsAll(path), needsRun(path)))
    const { url, init } = requestTo(path, method, operation, names)
    const body = JSON.parse(init.body ?? '{}') as Record<string, unknown>
    // A decision continues a run, which has its options; results of the caller's tools begin one.
    if (path.endsWith('/send-tool-approval') && option.startsWith('streamOptions')) body.messages = 'Hi'
    change(body)
    const told = await world.matrix.ask(who, url, { ...init, body: JSON.stringify(body) })
    // What was refused changed nothing: the next request may be about the same thread.
    if (told.status >= 400) world.unchanged.set(place, names)
    else world.unchanged.delete(place)
    return told
  }
  const key = `${who} ${method} ${path} ${path.endsWith('/send-tool-approval') && option.startsWith('streamOptions')}`
  const base = bases.get(key) ?? (await send(() => {}))
  bases.set(key, base)
  return cell(await send((body) => {
    // A schedule has one of these.
    if (option === 'every' || option === 'at') delete body.cron
    set(body, option, option.endsWith('ifIdle.behavior') ? 'wake' : value)
  }), base)
}

interface Shared {
  matrix: Matrix
  count: number
  /** Threads that no request has changed, by who asked for what. */
  unchanged: Map<string, Names>
}

const worlds = new Map<string, Shared>()
/** How each call without further options is answered. */
const bases = new Map<string, Told>()

async function shared(waiting: string | undefined): Promise<Shared> {
  let world = worlds.get(waiting ?? '')
  if (!world) worlds.set(waiting ?? '', (world = { matrix: new Matrix(), count: 0, unchanged: new Map() }))
  return world
}

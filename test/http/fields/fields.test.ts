import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { AgentVoice } from '../../../src/agent/voice/agent-voice.ts'
import { HeedEditor, PromptBlocks } from '../../../src/editor/index.ts'
import { ignored } from '../../../src/http/schema/schemas.ts'
import { Agent, Heed, Memory } from '../../../src/index.ts'
import { ResourceMemory } from '../../../src/memory/resource-memory.ts'
import { Schedules } from '../../../src/schedule/schedules.ts'
import { Workflow, WorkflowRun } from '../../../src/workflow/index.ts'
import { elsewhere } from './elsewhere.ts'
import { Heard } from './heard.ts'
import { fieldsOf, routesOf, valueOf, type Field, type Route } from './requests.ts'
import { fieldWorld, requestWith } from './world.ts'

const heard = new Heard()
const { heed, handler, storage, prepare } = await fieldWorld(heard)
const { paths } = (await (await handler(new Request('http://localhost/api/openapi.json'))).json()) as { paths: Parameters<typeof routesOf>[0] }
const routes = routesOf(paths)
const fields = routes.flatMap((route) => fieldsOf(route).map((field) => ({ route, field, key: `${route.key} ${field.name}` })))

// What a route is asked for goes to calls of the library, whose options have a walk of their own, to the storage, or to a model.
for (const { prototype } of [Agent, Memory, ResourceMemory, Heed, HeedEditor, PromptBlocks, AgentVoice, Workflow, WorkflowRun, Schedules]) heard.methodsOf(prototype)
const stores = await Promise.all((['notifications', 'schedules', 'subscriptions', 'watches'] as const).map((domain) => storage.getStore(domain)))
for (const one of [storage, heed.channels, ...stores]) heard.methodsOf(Object.getPrototypeOf(one) as object)

afterAll(async () => {
  heard.restore()
  handler.close()
  await heed.close()
})

/** Whether a text has the value of a field. */
function isIn(text: string, { name, path, schema }: Field, mark: number): boolean {
  const value = name === 'readMessages' ? false : valueOf(schema, mark)
  if (name === 'queue') return text.includes('queueMessage ')
  if (text.includes(`mark${mark}`) || text.includes(String(mark))) return true
  if (typeof value === 'string' && schema.format === 'date-time') return text.includes(value)
  return text.includes(`${JSON.stringify(path.at(-1))}:${JSON.stringify(value)}`)
}

/** Whether a request with the field differs from one without: a call got its value, or the answer has it, or rejects it by name. */
async function hasEffect(route: Route, field: Field, mark: number): Promise<boolean> {
  const about = await prepare(route)
  heard.take()
  const response = await handler(requestWith(route, field, mark, about))
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') ?? false
  const answer = isStream ? '' : await response.text()
  await response.body?.cancel().catch(() => {})
  if (isIn(heard.take(), field, mark) || isIn(answer, field, mark)) return true
  if (response.status < 400 || answer.includes('is invalid')) return false
  return answer.includes('"unsupported_option"') || field.path.some((name) => answer.includes(name))
}

const isIgnored = ({ schema }: Field) => schema.description === ignored.description
const shownElsewhere = new Set(elsewhere.flatMap((one) => one.fields))
const isElsewhere = (key: string) => shownElsewhere.has(key) || shownElsewhere.has(`* ${key.split(' ').at(-1)}`)

describe('every field of every route', () => {
  it('[H5.10] reaches a call that uses it, is rejected by name, or has a test that shows its effect', { timeout: 120_000 }, async () => {
    expect(fields.length).toBeGreaterThan(900)
    const shown = new Set<string>()
    for (const [index, { route, field, key }] of fields.entries()) {
      if (isElsewhere(key) || isIgnored(field)) shown.add(key)
      else if (await hasEffect(route, field, 70_000 + index)) shown.add(key)
    }
    // An object that has only optional fields is shown with one of them.
    const without = fields.filter(({ key }) => !shown.has(key) && ![...shown].some((one) => one.startsWith(`${key}.`)))
    expect(without.map(({ key }) => key)).toEqual([])
  })

  it('[H5.10] finds a field that its route accepts and ignores', async () => {
    const route = routes.find(({ key }) => key === 'GET /memory/threads/{threadId}/messages')
    const field = route && fieldsOf(route).find(({ name }) => name === '?includeSystemReminders')
    expect(route && field && (await hasEffect(route, { ...field, schema: { type: 'boolean' } }, 90_001))).toBe(false)
  })

  it('[H5.10] that is ignored is listed in docs/server.md, and one that a test shows elsewhere has this test', () => {
    const read = (file: string) => readFileSync(join(import.meta.dirname, '../../..', file), 'utf8')
    const page = read('docs/server.md')
    const names = new Set(fields.filter(({ field }) => isIgnored(field)).map(({ field }) => field.path.at(-1)))
    expect([...names].toSorted()).toEqual(['entity', 'includeSystemReminders', 'input', 'messageId', 'output', 'resourceId', 'scorer', 'tracingOptions'])
    for (const name of names) expect(page.slice(page.indexOf('## Existing clients'))).toMatch(new RegExp(`^\\| .*\`${name}\`.* \\| ignored \\|`, 'm'))
    const known = new Set(fields.map(({ key }) => key))
    for (const { file, title, fields: some } of elsewhere) {
      expect(read(file), file).toContain(title)
      expect(some.filter((key) => !known.has(key) && !key.startsWith('* '))).toEqual([])
    }
  })
})

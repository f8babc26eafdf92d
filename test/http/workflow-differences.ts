import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { createHandler } from '../../src/http/server.ts'
import { Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { cloneStep, createStep, createWorkflow } from '../../src/workflow/index.ts'

interface Answer {
  http: number
  code?: string
  runId: string
  status: string
  steps: Record<string, { output?: unknown }>
  path: Array<{ output?: unknown }>
  stepGraph: unknown
  runs: Array<{ runId: string; snapshot: object }>
}

const ask = createStep({ id: 'ask', execute: ({ resumeData, suspend }) => (resumeData === undefined ? suspend('?') : resumeData) })
const double = createStep({ id: 'double', execute: ({ inputData }) => Number(inputData) * 2 })
const asking = () => createWorkflow({ id: 'asking' }).then(ask).commit()
const listing = () => createWorkflow({ id: 'listing' }).foreach(double).commit()

/** A server, and its answers. */
function open(workflows: object = { asking: asking() }, storage: InMemoryStore | LibSQLStore = new InMemoryStore()) {
  const heed = new Heed({ workflows: workflows as { asking: ReturnType<typeof asking> }, storage, logger: silentLogger })
  const handler = createHandler(heed, { auth: 'local' })
  const close = async () => {
    handler.close()
    await heed.close()
  }
  onTestFinished(close)
  const tell = async (method: string, path: string, json?: object): Promise<Answer> => {
    const init = { method, ...(json ? { body: JSON.stringify(json), headers: { 'content-type': 'application/json' } } : {}) }
    const response = await handler(new Request(`http://localhost/api/workflows${path}`, init))
    const text = await response.text()
    return { ...(text.startsWith('{"type"') ? { text } : JSON.parse(text) as object), http: response.status } as unknown as Answer
  }
  return { tell, close }
}

/** A file that two servers open, one after the other. */
function file(): () => LibSQLStore {
  const folder = mkdtempSync(join(tmpdir(), 'heed-differences-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return () => new LibSQLStore({ url: `file:${join(folder, 'runs.db')}` })
}

/** What docs/server.md says of the calls of existing clients about workflows, shown. */
export const workflowDifferences: Record<string, () => Promise<void>> = {
  '`run.timeTravel` and its forms': async () => {
    const { tell } = open()
    await tell('POST', '/asking/start-async?runId=r', {})
    const { runId } = await tell('POST', '/asking/time-travel-async?runId=r', { step: 'ask' })
    expect(runId).not.toBe('r')
    await tell('POST', '/asking/resume-async?runId=r', { resumeData: 1 })
    expect([(await tell('GET', `/asking/runs/${runId}`)).status, (await tell('GET', '/asking/runs/r')).status]).toEqual(['suspended', 'success'])
  },
  '`run.restart`, `run.restartAsync` of a run that goes on': async () => {
    const { tell } = open()
    await tell('POST', '/asking/create-run?runId=r', {})
    expect((await tell('POST', '/asking/restart?runId=r', {})).http).toBe(200)
    await tell('POST', '/asking/start-async?runId=r', {})
    for (const path of ['restart', 'restart-async']) expect(await tell('POST', `/asking/${path}?runId=r`, {})).toMatchObject({ http: 409, code: 'run_not_parked' })
  },
  '`run.resume`, `run.restart` and their forms with `requestContext`': async () => {
    const { tell } = open()
    await tell('POST', '/asking/start-async?runId=r', {})
    for (const path of ['resume', 'resume-async', 'resume-no-wait', 'resume-stream', 'restart', 'restart-async'])
      expect([path, (await tell('POST', `/asking/${path}?runId=r`, { requestContext: { a: 1 } })).http]).toEqual([path, 400])
  },
  '`run.observe` after its chunks are gone': async () => {
    const storage = file()
    const first = open(undefined, storage())
    await first.tell('POST', '/asking/start-async?runId=r', {})
    await first.tell('POST', '/asking/resume-async?runId=r', { resumeData: 1 })
    await first.close()
    const { text } = await open(undefined, storage()).tell('POST', '/asking/observe?runId=r&offset=3') as unknown as { text: string }
    expect(text.split('\u001E').slice(0, -1).map((record) => (JSON.parse(record) as { type: string }).type).slice(0, 3)).toEqual(['workflow-start', 'workflow-step-start', 'workflow-step-suspended'])
  },
  'the steps of a loop or a list in `steps`': async () => {
    const { tell } = open({ listing: listing() })
    const { steps } = await tell('POST', '/listing/start-async?runId=r', { inputData: [1, 2] })
    expect(Object.keys(steps)).toEqual(['double'])
    expect((await tell('GET', '/listing/runs/r')).path.slice(0, 2)).toMatchObject([{ output: 2 }, { output: 4 }])
  },
  '`workflow.runs`, runs that were created and not started': async () => {
    const { tell } = open()
    await tell('POST', '/asking/create-run?runId=r', {})
    expect([(await tell('GET', '/asking/runs')).runs, (await tell('GET', '/asking/runs/r')).status]).toEqual([[], 'pending'])
  },
  '`workflow.runs`, `snapshot`': async () => {
    const { tell } = open()
    await tell('POST', '/asking/start-async?runId=r', {})
    expect((await tell('GET', '/asking/runs')).runs[0]?.snapshot).toEqual({ runId: 'r', status: 'suspended', timestamp: expect.any(Number) })
  },
  '`workflow.runs` with `limit` and `offset`': async () => {
    const { tell } = open()
    for (const runId of ['a', 'b', 'c']) await tell('POST', `/asking/start-async?runId=${runId}`, {})
    expect((await tell('GET', '/asking/runs?limit=2&offset=2')).runs.map(({ runId }) => runId)).toEqual(['a'])
    expect((await tell('GET', '/asking/runs?limit=2&offset=1')).http).toBe(400)
  },
  '`workflow.deleteRunById` of an unknown run': async () => {
    expect((await open().tell('DELETE', '/asking/runs/none')).http).toBe(200)
  },
  '`stepGraph`, `serializedStepGraph`': async () => {
    const { tell } = open({ listing: createWorkflow({ id: 'listing' }).branch([[() => true, double]]).waitForEvent('paid').commit() })
    expect((await tell('GET', '/listing')).stepGraph).toMatchObject([{ type: 'branch' }, { type: 'event' }])
  },
  'a run whose steps the code no longer has, or that ten processes left without progress': async () => {
    const storage = file()
    const first = open(undefined, storage())
    await first.tell('POST', '/asking/start-async?runId=r', {})
    await first.close()
    const { tell } = open({ asking: createWorkflow({ id: 'asking' }).then(cloneStep(ask, { id: 'other' })).commit() }, storage())
    await tell('POST', '/asking/resume?runId=r', { step: 'ask', resumeData: 1 })
    await expect.poll(async () => (await tell('GET', '/asking/runs/r')).status).toBe('parked')
  },
  '`restart-all-active-workflow-runs`, `steps/execute`, `/workflows/events` and routes with `-legacy`': async () => {
    const { tell } = open()
    for (const path of ['/asking/restart-all-active-workflow-runs', '/asking/runs/r/steps/execute', '/events', '/asking/stream-legacy'])
      expect(await tell('POST', path, {})).toMatchObject({ http: 404, code: 'unsupported_route' })
  },
}

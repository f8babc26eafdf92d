import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { apiKeys, serve, type RunningServer } from '../../src/http/server.ts'
import { Agent, createTool, Heed, InMemoryStore } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { cuttingProxy } from './cutting-proxy.ts'
import { heed, HeedProcess } from './heed-process.ts'
import { project } from './project.ts'

const key = 'a-long-random-key-of-user-7'
/** Resolves the calls of the tool `wait` of the agent `slow`. */
let release = () => {}

const guide = new Agent({ id: 'guide', model: scriptedModel([{ text: ['Take the train', ' at nine.'] }], { loop: true }) })
const wait = createTool({ id: 'wait', description: 'Waits.', execute: () => new Promise((resolve) => void (release = () => resolve({}))) })
const waiting = (id: string) => {
  const model = scriptedModel([{ text: ['I wait.'], toolCalls: [{ toolName: 'wait', input: {} }] }, { text: ['Done.'] }], { loop: true })
  return new Agent({ id, tools: { wait }, model })
}
const slow = waiting('slow')
const slower = waiting('slower')
const slowest = waiting('slowest')
const failing = new Agent({ id: 'failing', model: scriptedModel([{ error: new Error('the model is broken') }], { loop: true }) })
const made = new Heed({ agents: { guide, slow, slower, slowest, failing }, storage: new InMemoryStore() })
const single = new Heed({ agents: { guide: new Agent({ id: 'guide', model: scriptedModel(['Yes.'], { loop: true }) }) }, storage: new InMemoryStore() })
let server: RunningServer
let keyed: RunningServer

beforeAll(async () => {
  server = await serve(made, { port: 0, handleSignals: false })
  keyed = await serve(single, { port: 0, handleSignals: false, auth: apiKeys({ [key]: { id: 'user-7', resources: ['user-7'] } }) })
})
afterAll(() => Promise.all([server.close(), keyed.close()]))

const at = (url = server.url) => ({ env: { HEED_URL: url } })

function tailing(args: string[], url = server.url): HeedProcess {
  const running = new HeedProcess(['tail', ...args], at(url))
  onTestFinished(() => running.end())
  return running
}

const jsonLines = (text: string) => text.trim().split('\n').map((line) => JSON.parse(line) as { type: string; cursor?: string; [field: string]: unknown })

describe('heed send', () => {
  it('[C3.1] stores the message and prints its ids; with --wait outcome what became of it, with --wait answer the answer as it is written', async () => {
    const [stored, outcome, answer] = await Promise.all([
      heed(['send', 'trip-1', 'Hello', '--agent', 'guide', '--json'], at()),
      heed(['send', 'trip-2', 'Hello', '--agent', 'guide', '--wait', 'outcome', '--json'], at()),
      heed(['send', 'trip-3', 'Hello', '--agent', 'guide', '--wait', 'answer'], at()),
    ])
    expect(stored).toMatchObject({ code: 0, errors: '' })
    const sent = jsonLines(stored.output)[0]!
    expect(sent).toMatchObject({ type: 'sent', thread: 'trip-1', duplicate: false })
    expect(await guide.explain({ threadId: 'trip-1', resourceId: 'local', signalId: sent.signalId as string })).toMatchObject({ id: sent.signalId, runId: sent.runId })
    expect(outcome).toMatchObject({ code: 0 })
    expect(jsonLines(outcome.output)[0]).toMatchObject({ outcome: { action: 'woke', step: 0 } })
    expect(answer).toEqual({ code: 0, output: 'Take the train at nine.\n', errors: '' })
  })

  it('[C3.1] reads the text from standard input, names one message by its id, and uses the owner of a thread', async () => {
    await made.getAgent('guide').sendMessage('Hi.', { threadId: 'owned', resourceId: 'user-9' }).outcome
    const again = ['send', 'owned', '-', '--agent', 'guide', '--id', 'my-message', '--wait', 'outcome', '--json']
    const first = await heed(again, { ...at(), input: 'From a pipe\n' })
    const second = await heed(again, { ...at(), input: 'From a pipe\n' })
    expect([first.code, second.code]).toEqual([0, 0])
    expect([jsonLines(first.output)[0]!.duplicate, jsonLines(second.output)[0]!.duplicate]).toEqual([false, true])
    expect(jsonLines(second.output)[0]!.signalId).toBe('my-message')
    expect(await guide.explain({ threadId: 'owned', resourceId: 'user-9', signalId: 'my-message' })).toMatchObject({ id: 'my-message', state: 'consumed' })
  })

  it('[C3.1] enters the active run, queues behind it, or interrupts it', async () => {
    const send = (thread: string, ...more: string[]) => heed(['send', thread, 'More.', '--json', ...more], at())
    const scope = { threadId: 'slow-1', resourceId: 'local' }
    slow.sendMessage('Go.', scope)
    await expect.poll(() => slow.listActiveThreads({ resourceId: 'local' })).toHaveLength(1)
    const queued = await send('slow-1', '--agent', 'slow', '--queue')
    expect(jsonLines(queued.output)[0]).toMatchObject({ type: 'sent' })
    expect(await slow.listQueued(scope)).toHaveLength(1)
    const entering = send('slow-1', '--agent', 'slow', '--wait', 'outcome')
    await expect.poll(() => slow.listQueued(scope)).toHaveLength(2)
    release()
    expect(jsonLines((await entering).output)[0]).toMatchObject({ outcome: { action: 'delivered', step: 1 } })
    await slow.abortRun({ ...scope, clearPendingSignals: true })
    const other = { threadId: 'slow-2', resourceId: 'local' }
    slowest.sendMessage('Go.', other)
    await expect.poll(() => slowest.listActiveThreads({ resourceId: 'local' })).toHaveLength(1)
    const { signalId } = jsonLines((await send('slow-2', '--agent', 'slowest', '--interrupt')).output)[0] as unknown as { signalId: string }
    expect(await slowest.explain({ ...other, signalId })).toMatchObject({ route: 'interrupt' })
    await slowest.abortRun({ ...other, clearPendingSignals: true })
  })

  it('[C1.4] [C3.2] ends with 1 if the run fails, 2 for wrong arguments, 3 without a server, 4 without a key', async () => {
    const dead = { HEED_URL: 'http://127.0.0.1:9' }
    const [failed, both, several, none, noServer, noServerJSON, noKey, wrongUrl] = await Promise.all([
      heed(['send', 'bad-1', 'Hello', '--agent', 'failing', '--wait', 'answer'], at()),
      heed(['send', 'x', 'y', '--queue', '--interrupt'], at()),
      heed(['send', 'x', 'y'], at()),
      heed(['send', 'x'], at()),
      heed(['send', 'x', 'y'], { env: dead }),
      heed(['send', 'x', 'y', '--json'], { env: dead }),
      heed(['send', 'x', 'y'], at(keyed.url)),
      heed(['send', 'x', 'y', '--url', 'localhost'], at()),
    ])
    expect(failed).toMatchObject({ code: 1, output: '', errors: expect.stringContaining('heed send: the run failed: scripted/scripted failed: the model is broken') as string })
    expect(both).toEqual({ code: 2, output: '', errors: 'heed send: --queue waits for the run to end, and --interrupt cuts it: give one of them.\n' })
    expect(several).toEqual({ code: 2, output: '', errors: 'heed send: the server has 5 agents: guide, slow, slower, slowest, failing.\n  Name one with --agent.\n' })
    expect(none).toEqual({ code: 2, output: '', errors: 'heed send: name the TEXT, or pipe it in.\n' })
    expect(noServer).toEqual({
      code: 3, output: '',
      errors: 'heed send: The server at http://127.0.0.1:9 did not respond.\n  Start a server with heed dev or heed start, or name another with --url or HEED_URL.\n  unreachable\n',
    })
    expect(noServerJSON).toMatchObject({ code: 3, output: '' })
    expect(JSON.parse(noServerJSON.errors)).toMatchObject({ error: { code: 'unreachable', retryable: true } })
    expect(noKey).toMatchObject({ code: 4, output: '', errors: expect.stringContaining('Set HEED_API_KEY, or name a file with the key: --key-file FILE\n  unauthorized\n') as string })
    expect(wrongUrl).toEqual({ code: 2, output: '', errors: "heed send: 'localhost' is not the URL of a server.\n  Such as http://127.0.0.1:4111\n" })
  })

  it('[C3.2] reads the key from the environment or from a file, never from an argument', async () => {
    const { folder } = project({})
    writeFileSync(join(folder, 'key'), `${key}\n`)
    const [variable, file, argument] = await Promise.all([
      heed(['send', 'k-1', 'Hello', '--wait', 'answer'], { env: { HEED_URL: keyed.url, HEED_API_KEY: key } }),
      heed(['send', 'k-2', 'Hello', '--wait', 'answer', '--key-file', join(folder, 'key')], at(keyed.url)),
      heed(['send', 'k-3', 'Hello', '--key', key], at(keyed.url)),
    ])
    expect(variable).toEqual({ code: 0, output: 'Yes.\n', errors: '' })
    expect(file).toEqual({ code: 0, output: 'Yes.\n', errors: '' })
    expect(argument).toMatchObject({ code: 2, output: '', errors: 'heed send: there is no option --key.\n  Did you mean --key-file?\n' })
  })
})

describe('heed tail', () => {
  it('[C3.3] prints a run as text, and as chunks with cursors with --json, and ends with it', async () => {
    const text = tailing(['tail-1', '--agent', 'guide', '--until', 'finish'])
    const json = tailing(['tail-1', '--agent', 'guide', '--until', 'finish', '--json'])
    await expect.poll(() => text.errors).toContain('waiting')
    // The JSON reader prints nothing until a chunk arrives: both subscriptions are open when the server has two.
    await expect.poll(async () => (await openStreams()) >= 2).toBe(true)
    guide.sendMessage('How do I get to Bern?', { threadId: 'tail-1', resourceId: 'local' })
    expect(await text.ended).toMatchObject({ code: 0, output: expect.stringMatching(/you {2}How do I get to Bern\?\n +agent {2}Take the train at nine\.\n$/) as string })
    const { code, output, errors } = await json.ended
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    const chunks = jsonLines(output)
    expect(chunks.map(({ type }) => type)).toEqual(expect.arrayContaining(['start', 'data-user-message', 'text-delta', 'finish']))
    expect(chunks.every(({ cursor }) => typeof cursor === 'string')).toBe(true)
    const after = chunks.find(({ type }) => type === 'step-start')!.cursor!
    const rest = await heed(['tail', 'tail-1', '--agent', 'guide', '--after', after, '--until', 'finish', '--json'], at())
    expect(jsonLines(rest.output)).toEqual(chunks.slice(chunks.findIndex(({ cursor }) => cursor === after) + 1))
  })

  it('[C3.3] continues at its cursor after a lost connection: no chunk is missed or repeated', async () => {
    const proxy = await cuttingProxy(server.url)
    const running = tailing(['cut-1', '--agent', 'slower', '--until', 'finish', '--json'], proxy.url)
    const whole = tailing(['cut-1', '--agent', 'slower', '--until', 'finish', '--json'])
    await expect.poll(async () => (await openStreams()) >= 2).toBe(true)
    slower.sendMessage('Go.', { threadId: 'cut-1', resourceId: 'local' })
    await expect.poll(() => running.output).toContain('"tool-call"')
    proxy.cut()
    release()
    const [cut, uncut] = await Promise.all([running.ended, whole.ended])
    expect(cut.code).toBe(0)
    expect(proxy.cuts).toBe(1)
    expect(jsonLines(cut.output)).toEqual(jsonLines(uncut.output))
  })

  it('[C1.4] [C3.3] ends with 130 at Ctrl-C, with 1 if the run fails, and with 3 without a server', async () => {
    const interrupted = tailing(['tail-2', '--agent', 'guide'])
    const failing = tailing(['bad-2', '--agent', 'failing', '--until', 'finish'])
    await expect.poll(() => interrupted.errors && failing.errors).toContain('waiting')
    interrupted.child.kill('SIGINT')
    made.getAgent('failing').sendMessage('Go.', { threadId: 'bad-2', resourceId: 'local' })
    expect(await interrupted.ended).toMatchObject({ code: 130, output: '' })
    expect(await failing.ended).toMatchObject({ code: 1, output: expect.stringContaining('the model is broken') as string })
    const noServer = await heed(['tail', 'x'], at('http://127.0.0.1:9'))
    expect(noServer).toMatchObject({ code: 3, output: '', errors: expect.stringContaining('unreachable') as string })
  })
})

describe('heed inbox', () => {
  it('[C3.4] lists the notifications of a thread, shows one, and marks them', async () => {
    const scope = { threadId: 'inbox-1', resourceId: 'local' }
    const note = (id: string, priority: 'low' | 'medium') => ({ id, source: 'github', kind: 'ci', summary: `Build ${id} failed`, priority, payload: { log: 'x' } })
    await guide.sendMessage('Hi.', scope).outcome
    await guide.sendNotificationSignal([note('n-1', 'low'), note('n-2', 'medium')], scope)
    const inbox = (...args: string[]) => heed(['inbox', 'inbox-1', '--agent', 'guide', ...args], at())
    const [text, json, low, one, two] = await Promise.all([
      inbox(), inbox('--json'), inbox('--priority', 'low', '--json'), inbox('--show', 'n-1', '--json'), inbox('--seen', 'n-1', '--dismiss', 'n-2'),
    ])
    expect(text).toMatchObject({ code: 0, output: expect.stringMatching(/^medium +\w+ +github\/ci {2}Build n-2 failed {2}\(n-2\)\nlow /) as string })
    expect(jsonLines(json.output)[0]).toMatchObject({ type: 'inbox', thread: 'inbox-1', notifications: [{ id: 'n-2' }, { id: 'n-1' }], more: false })
    expect(jsonLines(low.output)[0]).toMatchObject({ notifications: [{ id: 'n-1' }] })
    expect(jsonLines(one.output)[0]).toMatchObject({ type: 'notification', id: 'n-1', payload: { log: 'x' } })
    expect(two).toMatchObject({ code: 2 })
    expect(await inbox('--dismiss', 'n-1', '--dismiss', 'n-2', '--json')).toMatchObject({ code: 0, output: '{"type":"marked","status":"dismissed","ids":["n-1","n-2"]}\n' })
    expect(await inbox('--dismiss', 'n-1')).toMatchObject({ code: 6 })
    expect(await inbox('--show', 'n-9')).toMatchObject({ code: 1, output: '', errors: 'heed inbox: The thread has no notification n-9.\n  not_found\n' })
  })
})

/** The open event streams of the server. */
async function openStreams(): Promise<number> {
  const text = await (await fetch(`${server.url}/api/metrics`)).text()
  return Number(/^heed_event_streams (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
}

import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, silentLogger } from '../../src/index.ts'
import { serve } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { newFile } from '../new-file.ts'
import { soon } from '../thread/said.ts'
import { kept } from '../thread/transcript.ts'
import { member, type Member } from './cluster.ts'

const resourceId = 'user-1'
const long = 60_000

describe('a process that drains', () => {
  it('[B3.1] lets a run go on to its next boundary, where another process continues it, and repeats nothing', async () => {
    const file = newFile()
    const [a, b] = await Promise.all([member(file), member(file)])
    const thread = { resourceId, threadId: 't' }
    await a.ask('send', 'one tool wait door', thread)
    await soon(async () => a.ask('runsHere', 't')).toBe(true)
    await soon(async () => JSON.stringify(await a.ask('recall', 't')).includes('call-one')).toBe(true)
    const closed = a.ask('close', long)
    // It is accepted meanwhile, by the process that drains too.
    const { id } = await a.ask('send', 'two say 2', thread)
    await a.ask('open', 'door')
    await closed
    await soon(async () => b.ask('activeRun', thread)).toBeNull()
    const history = kept(await b.ask('recall', 't'))
    expect(history.filter((line) => line.startsWith('signal'))).toEqual([expect.any(String), `signal ${id}`])
    expect(history.at(-1)).toBe('text two-0 two-1 ')
    expect(JSON.stringify(history)).not.toContain('interrupted')
    const [run] = await b.ask('runs', 't')
    expect(run).toMatchObject({ status: 'finished' })
    expect((await b.ask('calls')).map(({ about }) => about)).toEqual(['two'])
  })

  it('[B3.1] begins no run any more: what it accepts runs in another process', async () => {
    const file = newFile()
    const a = await member(file)
    await a.ask('send', 'one say 4 door', { resourceId, threadId: 'long' })
    await soon(async () => (await a.ask('calls')).length).toBe(1)
    const closed = a.ask('close', long)
    const { id } = await a.ask('send', 'two say 2', { resourceId, threadId: 'other' })
    expect(await a.ask('outcome', id)).toMatchObject({ action: 'queued', reason: 'busy' })
    await expect(a.ask('generate', 'three say 2', 'third', resourceId)).rejects.toMatchObject({ code: 'closed' })
    const b = await member(file)
    await soon(async () => kept(await b.ask('recall', 'other')).at(-1)).toBe('text two-0 two-1 ')
    expect((await a.ask('calls')).map(({ about }) => about)).toEqual(['one'])
    await a.ask('open', 'door')
    await closed
    expect(kept(await b.ask('recall', 'long')).at(-1)).toBe('text one-0 one-1 one-2 one-3 ')
    expect(await b.ask('runs', 'long')).toMatchObject([{ status: 'finished', attempts: 1 }])
  })

  it('[B3.1] waits no longer than it may, and for no run that is at a boundary', async () => {
    const agent = new Agent({ id: 'guide', model: scriptedModel([{ text: ['On'], hang: true }], { loop: true }) })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    await agent.sendMessage('Go.', { resourceId, threadId: 't' }).stored
    await soon(() => agent.threads().hosts().some(({ runId }) => runId !== undefined)).toBe(true)
    await heed.close({ drainMs: 1 })
    const idle = new Heed({ agents: {}, storage: new InMemoryStore(), logger: silentLogger })
    await idle.close({ drainMs: long })
  })

  it('[B3.1] ends a call that waits here with its result', async () => {
    const gate = Promise.withResolvers<void>()
    const wait = createTool({ id: 'wait', execute: () => gate.promise.then(() => 'waited') })
    const model = scriptedModel([{ toolCalls: [{ toolName: 'wait', toolCallId: 'c', input: {} }] }, 'Done.'])
    const agent = new Agent({ id: 'guide', model, tools: { wait } })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    const result = agent.generate('Go.', { memory: { thread: 't', resource: 'u' } })
    await soon(() => model.calls.length).toBe(1)
    const closed = heed.close({ drainMs: long })
    gate.resolve()
    expect((await result).text).toBe('Done.')
    await closed
  })

  it('[B3.2] a server accepts until its listener closes, and refuses calls with 503 and Retry-After', async () => {
    const gate = Promise.withResolvers<void>()
    const model = scriptedModel([{ text: ['One', ' two'], gate: { parts: 1, until: gate.promise } }])
    const agent = new Agent({ id: 'guide', model })
    const heed = new Heed({ agents: { agent }, storage: new InMemoryStore(), logger: silentLogger })
    const server = await serve(heed, { port: 0, handleSignals: false })
    onTestFinished(() => server.close())
    const post = (path: string, body: object) => fetch(`${server.url}/api/agents/guide/${path}`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
    })
    await agent.sendMessage('Go.', { resourceId, threadId: 't' }).stored
    await soon(() => model.calls.length).toBe(1)
    const closed = server.close({ drainMs: long })
    const accepted = await post('send-message', { message: 'More.', resourceId, threadId: 'other' })
    expect(accepted.status).toBe(200)
    const refused = await post('generate', { messages: 'Go.', memory: { thread: 'x', resource: resourceId } })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    gate.resolve()
    await closed
    await expect(post('send-message', { message: 'Late.', resourceId, threadId: 'other' })).rejects.toThrow('fetch failed')
  })

  it('[B3.1] a rolling restart under load loses nothing and runs nothing twice', async () => {
    const file = newFile()
    let members: Member[] = await Promise.all([member(file), member(file)])
    const sent: Array<{ threadId: string; id: string }> = []
    let going = true
    const load = (async () => {
      for (let index = 0; going || index % 12 !== 0; index++) {
        const threadId = `t${index % 6}`
        const from = members[index % members.length]
        const accepted = await from?.ask('send', `m${index} ${index % 3 === 0 ? 'tool wait' : 'say 3'}`, { resourceId, threadId }).catch(() => undefined)
        // One that was closed in between refuses it; nothing of it is stored.
        if (accepted) sent.push({ threadId, id: accepted.id })
      }
    })()
    for (let round = 0; round < 4; round++) {
      const [old, ...rest] = members as [Member, Member]
      const next = await member(file)
      members = [...rest, next]
      await old.ask('close', long)
      await old.end()
    }
    going = false
    await load
    const [a] = members as [Member]
    for (let thread = 0; thread < 6; thread++) {
      const threadId = `t${thread}`
      await soon(async () => a.ask('activeRun', { threadId })).toBeNull()
      await soon(async () => a.ask('queued', { threadId })).toEqual([])
      const messages = await a.ask('recall', threadId)
      const ids = messages.filter(({ role }) => role === 'signal' || role === 'user').map(({ id }) => id)
      expect(ids.toSorted()).toEqual(sent.filter((one) => one.threadId === threadId).map(({ id }) => id).toSorted())
      expect((await a.ask('runs', threadId)).filter(({ status }) => status !== 'finished')).toEqual([])
      const answers = kept(messages).filter((line) => line.startsWith('text m'))
      expect(new Set(answers).size).toBe(answers.length)
      expect(JSON.stringify(messages)).not.toContain('interrupted')
    }
  })
})

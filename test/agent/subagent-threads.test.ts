import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Agent, createTool, Heed, InMemoryStore, Memory } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { rejection } from './asking.ts'

const asks = (name: string) => scriptedModel([{ toolCalls: [{ toolCallId: 'c1', toolName: `agent-${name}`, input: { prompt: 'Go on.' } }] }, 'Done.'])
const memory = { thread: 't', resource: 'u' }
const transcript = async (agent: Agent, threadId: string) => (await (await agent.getMemory()).recall({ threadId, perPage: false })).messages.map(({ role }) => role)

describe('the threads of agents that are registered nowhere', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'heed-subagents-'))
    vi.spyOn(process, 'cwd').mockReturnValue(folder)
  })

  afterEach(() => {
    vi.restoreAllMocks()
    // Where a local file would go by default, whatever the process says its folder is.
    expect(existsSync('heed.db')).toBe(false)
    expect(readdirSync(folder)).toEqual([])
    rmSync(folder, { recursive: true })
  })

  it('are kept where the agent that asks keeps its own, at any depth', async () => {
    const leaf = new Agent({ id: 'leaf', model: scriptedModel(['Here.']) })
    const middle = new Agent({ id: 'middle', model: asks('leaf'), agents: { leaf } })
    const top = new Agent({ id: 'top', model: asks('middle'), agents: { middle } })
    const heed = new Heed({ agents: { top }, storage: new InMemoryStore() })
    expect((await top.generate('Go.', { memory })).toolResults).toMatchObject([{ result: { text: 'Done.' } }])
    expect(await transcript(top, 'child:t/c1')).toEqual(['user', 'assistant'])
    expect(await transcript(top, 'child:t/c1/c1')).toEqual(['user', 'assistant'])
    expect(await transcript(leaf, 'child:t/c1/c1')).toEqual(['user', 'assistant'])
    await heed.close()
  })

  it('are kept in the storage of a memory, where that is all the agent that asks has', async () => {
    const leaf = new Agent({ id: 'leaf', model: scriptedModel(['Here.']) })
    const top = new Agent({ id: 'top', model: asks('leaf'), agents: { leaf }, memory: new Memory({ storage: new InMemoryStore() }) })
    await top.generate('Go.', { memory })
    expect(await transcript(top, 'child:t/c1')).toEqual(['user', 'assistant'])
    await top.threads().close()
  })

  it('[M4.5] are deleted with the thread above, their pending signals too, and are listed on request', async () => {
    const leaf = new Agent({ id: 'leaf', model: scriptedModel([{ toolCalls: [{ toolName: 'pay', toolCallId: 'p', input: {} }] }]), tools: { pay: createTool({ id: 'pay', requireApproval: true, execute: () => 1 }) } })
    const middle = new Agent({ id: 'middle', model: asks('leaf'), agents: { leaf } })
    const top = new Agent({ id: 'top', model: asks('middle'), agents: { middle } })
    const heed = new Heed({ agents: { top, middle, leaf }, storage: new InMemoryStore() })
    const waits = await top.generate('Go.', { memory })
    expect(waits.finishReason).toBe('suspended')
    const kept = await top.getMemory()
    const listed = async (args: object) => (await kept.listThreads({ resourceId: 'u', orderBy: { field: 'createdAt', direction: 'ASC' }, ...args })).threads.map(({ id }) => id)
    expect(await listed({})).toEqual(['t'])
    expect(await listed({ children: true, perPage: false })).toEqual(['t', 'child:t/c1', 'child:t/c1/c1'])
    expect(await listed({ filter: { parentId: 't' } })).toEqual(['child:t/c1'])
    expect((await leaf.listSuspendedRuns()).runs).toHaveLength(1)
    await leaf.sendNotificationSignal({ source: 's', kind: 'k', summary: 'x', priority: 'low' }, { threadId: 'child:t/c1/c1', resourceId: 'u' })
    expect(await rejection(kept.listThreads({ filter: { parentId: 7 } } as never))).toMatchObject({ code: 'invalid_argument', details: { field: 'filter.parentId' } })
    expect(await kept.deleteThread('t')).toBe(true)
    expect(await listed({ children: true })).toEqual([])
    for (const agent of [top, middle, leaf]) expect((await agent.listSuspendedRuns()).runs).toEqual([])
    expect(await top.listActiveThreads()).toEqual([])
    expect((await (await heed.sites.of().inbox.store()).listNotifications({ threadId: 'child:t/c1/c1' })).notifications).toEqual([])
    expect(await kept.deleteThread('t')).toBe(false)
    await heed.close()
  })

  it('stay where they are for an agent that has a place of its own', async () => {
    const own = new Agent({ id: 'leaf', model: scriptedModel(['Here.']), memory: new Memory({ storage: new InMemoryStore() }) })
    const top = new Agent({ id: 'top', model: asks('leaf'), agents: { leaf: own } })
    const heed = new Heed({ agents: { top }, storage: new InMemoryStore() })
    await top.generate('Go.', { memory })
    expect(await transcript(own, 'child:t/c1')).toEqual(['user', 'assistant'])
    expect(await transcript(top, 'child:t/c1')).toEqual([])
    await heed.close()
    await own.threads().close()
  })

  it('belong to the Heed of the caller when two programs share an agent', async () => {
    const shared = new Agent({ id: 'leaf', model: scriptedModel(['One.', 'Two.']) })
    const tops = ['a', 'b'].map((id) => new Agent({ id, model: asks('leaf'), agents: { leaf: shared } }))
    const heeds = tops.map((top) => new Heed({ agents: { top }, storage: new InMemoryStore() }))
    await Promise.all(tops.map((top) => top.generate('Go.', { memory })))
    for (const top of tops) expect(await transcript(top, 'child:t/c1')).toEqual(['user', 'assistant'])
    await Promise.all(heeds.map((heed) => heed.close()))
    expect(await rejection(shared.generate('Still there?', { memory }))).toMatchObject({ code: 'closed' })
  })
})

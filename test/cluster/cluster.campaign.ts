import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Chunk, ThreadSnapshot } from '../../src/index.ts'
import { isType, joinedLog, soon } from '../thread/said.ts'
import { kept, told } from '../thread/transcript.ts'
import { cluster, member, patientMember, started, type Member } from './cluster.ts'
import { newFile } from '../new-file.ts'

/** Processes that several tests use, each on threads of its own. */
let a: Member
let b: Member
let thread: { resourceId: string; threadId: string }
let threadId: string
let threads = 0
const folder = mkdtempSync(join(tmpdir(), 'heed-cluster-'))
beforeAll(async () => {
  const file = join(folder, 'heed.db')
  ;[a, b] = await Promise.all([started(file), started(file)])
})
beforeEach(() => {
  threadId = `thread-${++threads}`
  thread = { resourceId: 'user-1', threadId }
})
afterEach(() => Promise.all([a.ask('forget'), b.ask('forget')]))
afterAll(async () => {
  await Promise.all([a.end(), b.end()])
  rmSync(folder, { recursive: true, force: true })
})

const log = async (of: Member, key = 'log'): Promise<Chunk[]> => (await of.ask('log', key)) ?? []
const hears = (of: Member, type: string, key = 'log') => soon(async () => (await log(of, key)).some(isType(type))).toBe(true)
const says = (of: Member, text: string, key = 'log') => soon(async () => JSON.stringify(await log(of, key)).includes(text)).toBe(true)
const idle = (of: Member, id: string = threadId) => soon(async () => of.ask('activeRun', { threadId: id })).toBeNull()

describe('two processes on one file', () => {
  it('[A4.2] a message of one enters the run of the other at its next boundary, and its outcome has run and step', async () => {
    const { runId } = await a.ask('send', `one tool wait ${threadId}`, thread)
    await a.ask('subscribe', 'log', thread)
    await hears(a, 'tool-call')
    const { id } = await b.ask('send', 'two say 2', thread)
    await a.ask('open', threadId)
    expect(await b.ask('outcome', id)).toEqual({ action: 'delivered', runId, step: 1 })
    await idle(b)
    expect((await b.ask('calls')).some(({ about }) => about === 'two')).toBe(false)
    const history = kept(await b.ask('recall', threadId))
    expect(history.filter((line) => line.startsWith('signal'))).toHaveLength(2)
    expect(history.at(-1)).toBe('text two-0 two-1 ')
    expect(await b.ask('runs', threadId)).toHaveLength(1)
  })

  it('[A4.2] a signal that one cancels is discarded for the other that sent it; one behind a suspended run is queued', async () => {
    await a.ask('send', 'one hang', thread)
    await soon(async () => (await b.ask('activeRun', thread))?.status).toBe('running')
    const { id } = await b.ask('send', 'two say 2', thread)
    expect(await a.ask('cancel', { ...thread, signalIds: [id] })).toEqual([id])
    expect(await b.ask('outcome', id)).toEqual({ action: 'discarded', reason: 'cancelled' })
    expect(await b.ask('abortRun', thread)).toMatchObject({ aborted: true })
    const other = { ...thread, threadId: `${threadId}-2` }
    await a.ask('send', 'three tool ask', other)
    await soon(async () => (await b.ask('activeRun', other))?.status).toBe('suspended')
    const late = await b.ask('send', 'four say 2', other)
    expect(await b.ask('outcome', late.id)).toMatchObject({ action: 'queued', reason: 'suspended' })
  })

  it('[A2.3] the same send repeated from both at once is one signal', async () => {
    for (let round = 0; round < 20; round++) {
      const id = `same-${round}`
      await Promise.all([a, b, a, b].map((sender) => sender.ask('send', 'one say 2', { ...thread, id })))
      const outcomes = await Promise.all([a, b].map((sender) => sender.ask('outcome', id)))
      expect(outcomes.map((outcome) => (outcome as { action: string }).action)).toEqual([expect.stringMatching(/woke|delivered/), expect.stringMatching(/woke|delivered/)])
    }
    await idle(a)
    const signals = kept(await a.ask('recall', threadId)).filter((line) => line.startsWith('signal'))
    expect(signals).toEqual(Array.from({ length: 20 }, (_, round) => `signal same-${round}`))
  })

  it('[W2.2] watchers in both see the same log with the same cursors, whichever process runs', async () => {
    await Promise.all([a, b].map((each) => each.ask('subscribe', 'log', thread)))
    for (const [index, runner] of [a, b, a, b].entries()) {
      await runner.ask('send', `m${index} say 40`, thread)
      // A process that runs the thread next, before it received the last chunks of this run, begins with a snapshot.
      for (const each of [a, b]) await soon(async () => (await log(each)).filter(isType('finish')).length).toBe(index + 1)
      await idle(a)
    }
    await b.ask('send', 'tool tool wait', thread)
    await soon(async () => (await log(a)).filter(isType('finish')).length).toBe(5)
    await soon(async () => (await log(b)).filter(isType('finish')).length).toBe(5)
    const [ofA, ofB] = [await log(a), await log(b)]
    expect(joinedLog(ofB)).toEqual(joinedLog(ofA))
    expect(ofB.map(({ cursor }) => cursor)).toEqual(ofA.map(({ cursor }) => cursor))
    expect(ofA.some(isType('data-thread-snapshot'))).toBe(false)
  })

  it('[W2.2] a watcher that joins in the middle of a run elsewhere has it from its start, and returns with a cursor to either process', async () => {
    await a.ask('subscribe', 'log', thread)
    await a.ask('send', `one say 60 ${threadId}`, thread)
    await says(a, 'one-20 ')
    await b.ask('subscribe', 'log', thread)
    await says(b, 'one-20 ')
    const seen = await log(b)
    expect(joinedLog(seen)).toEqual(joinedLog((await log(a)).slice(0, seen.length)))
    await b.ask('unsubscribe', 'log')
    const at = seen[Math.floor(seen.length / 2)]?.cursor ?? ''
    await b.ask('subscribe', 'again', { ...thread, after: at })
    await a.ask('open', threadId)
    await hears(a, 'finish')
    await hears(b, 'finish', 'again')
    const whole = await log(a)
    const rest = whole.slice(whole.findIndex(({ cursor }) => cursor === at) + 1)
    expect(joinedLog(await log(b, 'again'))).toEqual(joinedLog(rest))
    // After the run, a process that still has its chunks sends them.
    await b.ask('unsubscribe', 'again')
    await b.ask('subscribe', 'after', { ...thread, after: at })
    await hears(b, 'finish', 'after')
    expect(joinedLog(await log(b, 'after'))).toEqual(joinedLog(rest))
  })

  it('[W1.2] a watcher elsewhere receives a snapshot when the run is taken over, and continues from there', async () => {
    const [a, b] = await cluster(2) as [Member, Member]
    await b.ask('subscribe', 'log', thread)
    await a.ask('send', `one tool wait ${threadId}`, thread)
    await hears(b, 'tool-call')
    await a.ask('close')
    await hears(b, 'finish')
    const seen = await log(b)
    const snapshots = seen.filter(isType('data-thread-snapshot')).map((chunk) => ('data' in chunk ? (chunk.data as ThreadSnapshot).reason : ''))
    expect(snapshots).toEqual(['resumed'])
    expect(told(seen)).toEqual(kept(await b.ask('recall', threadId)))
    const epochs = seen.map(({ cursor = '' }) => Number(cursor.split('.')[0]))
    expect(epochs).toEqual([...epochs].sort((x, y) => x - y))
  })

  it('[W1.2] a watcher follows a run from process to process', async () => {
    const file = newFile()
    const watcher = await member(file, 'other')
    const runners = await Promise.all([1, 2, 3].map(() => member(file, 'guide')))
    await watcher.ask('subscribe', 'log', thread)
    await runners[0]?.ask('send', 'one hang', thread)
    for (let gone = 0; gone < 2; gone++) {
      await soon(async () => (await log(watcher)).filter(isType('text-start')).length).toBe(gone + 1)
      const working = await Promise.all(runners.map(async (runner) => (await runner.ask('calls')).length > 0))
      const [runner] = runners.splice(working.indexOf(true), 1)
      await runner?.ask('close')
    }
    await soon(async () => (await log(watcher)).filter(isType('text-start')).length).toBe(3)
    expect(await watcher.ask('abortRun', thread)).toMatchObject({ aborted: true })
    await hears(watcher, 'abort')
    const seen = await log(watcher)
    const reasons = seen.filter(isType('data-thread-snapshot')).map((chunk) => ('data' in chunk ? (chunk.data as ThreadSnapshot).reason : ''))
    expect(reasons).toEqual(['resumed', 'resumed'])
    expect(told(seen)).toEqual(kept(await watcher.ask('recall', threadId)))
  })

  it('[W1.2] a watcher whose process is stopped slows no other, and has the whole log when it continues', async () => {
    const [a, b] = await cluster(2) as [Member, Member]
    await b.ask('subscribe', 'log', thread)
    await a.ask('send', `one say 20000 ${threadId}`, thread)
    await says(b, 'one-0 ')
    b.child.kill('SIGSTOP')
    await a.ask('open', threadId)
    await idle(a)
    b.child.kill('SIGCONT')
    await hears(b, 'finish')
    expect(told(await log(b))).toEqual(kept(await a.ask('recall', threadId)))
  })

  it('[W2.2] what runs in a process as it comes is seen from its first word by those who watched before', async () => {
    const file = newFile()
    const watcher = await member(file)
    for (let round = 0; round < 5; round++) {
      const target = { ...thread, threadId: `${threadId}-${round}` }
      await watcher.ask('subscribe', `log ${round}`, target)
      const runner = await patientMember(file)
      await runner.ask('send', 'one say 2', target)
      await hears(watcher, 'finish', `log ${round}`)
      const seen = await log(watcher, `log ${round}`)
      expect(seen[0]?.cursor).toBe('1.1')
      expect(seen.some(isType('data-thread-snapshot'))).toBe(false)
    }
  })

  it('[W1.2] what one stores on an idle thread is seen in the other', async () => {
    await a.ask('send', 'one say 2', thread)
    await idle(a)
    await Promise.all([a, b].map((each) => each.ask('subscribe', 'log', thread)))
    for (const sender of [a, b]) {
      const { id } = await sender.ask('send', 'note', { ...thread, ifIdle: { behavior: 'persist' } })
      await says(a, id)
      await says(b, id)
    }
    expect(joinedLog(await log(a))).toEqual(joinedLog(await log(b)))
    expect(await log(a)).toHaveLength(2)
  })

  it('[R8.3] a run is interrupted from the other process', async () => {
    const { runId } = await a.ask('send', 'one hang', thread)
    await b.ask('subscribe', 'log', thread)
    await says(b, 'and')
    const { id } = await b.ask('send', 'two say 2', { ...thread, ifActive: { behavior: 'interrupt' } })
    expect(await b.ask('outcome', id)).toEqual({ action: 'delivered', runId, step: 1 })
    await hears(b, 'finish')
    expect(kept(await b.ask('recall', threadId)).slice(1)).toEqual(['text On and on', `signal ${id}`, 'text two-0 two-1 '])
  })

  it('[R8.3] a run is aborted from the other process, by its thread, by a watcher, and where it is suspended', async () => {
    const first = await a.ask('send', 'one hang', thread)
    await b.ask('subscribe', 'log', thread)
    await says(b, 'and')
    expect(await b.ask('abortRun', { ...thread, expectedRunId: 'another' })).toEqual({ aborted: false, runId: first.runId })
    expect(await b.ask('abortRun', thread)).toEqual({ aborted: true, runId: first.runId })
    await hears(b, 'abort')
    await idle(b)
    expect(await b.ask('abortRun', thread)).toEqual({ aborted: false })

    await a.ask('send', 'two hang', thread)
    await soon(async () => (await log(b)).filter(isType('text-start')).length).toBe(2)
    expect(await b.ask('abortSubscribed', 'log')).toBe(true)
    await soon(async () => (await log(b)).filter(isType('abort')).length).toBe(2)
    await idle(b)

    const third = await a.ask('send', 'three tool ask', thread)
    await hears(b, 'tool-call-approval')
    expect(await b.ask('abortRun', thread)).toEqual({ aborted: true, runId: third.runId })
    await idle(a)
    await soon(async () => (await log(b)).filter(isType('abort')).length).toBe(3)
    await expect(b.ask('abortRun', { ...thread, resourceId: 'somebody else' })).rejects.toMatchObject({ code: 'thread_forbidden' })
  })

  it('[R6.4] a call that waits is approved from the other process, and watchers in both see what follows', async () => {
    await a.ask('subscribe', 'log', thread)
    await a.ask('send', 'one tool ask', thread)
    await hears(a, 'tool-call-approval')
    await b.ask('subscribe', 'log', thread)
    await b.ask('approve', { ...thread, approved: true })
    await hears(a, 'finish')
    await hears(b, 'finish')
    expect((await log(a)).some(isType('data-thread-snapshot'))).toBe(false)
    expect(told(await log(a))).toEqual(kept(await b.ask('recall', threadId)))
  })

  it('[R6.4] a process that lacks the agent decides, and one that has it goes on', async () => {
    const file = newFile()
    const a = await member(file, 'guide')
    const b = await member(file, 'other')
    await a.ask('subscribe', 'log', thread)
    await a.ask('send', 'one tool ask', thread)
    await hears(a, 'tool-call-approval')
    await b.ask('approve', { ...thread, approved: true }, 'other')
    await hears(a, 'finish')
    expect(kept(await a.ask('recall', threadId)).some((line) => line.includes('"asked"'))).toBe(true)
  })

  it('signals for an agent that the runner lacks, or of a caller elsewhere, are run where they can be', async () => {
    const file = newFile()
    const a = await member(file, 'guide')
    const b = await member(file, 'guide', 'other')
    await a.ask('send', `one say 4 ${threadId}`, thread)
    await soon(async () => (await b.ask('activeRun', thread))?.status).toBe('running')
    await b.ask('send', 'two say 2', { ...thread, agentId: 'other', mode: 'queue' })
    const call = b.ask('generate', 'three say 2', threadId, thread.resourceId)
    await soon(async () => (await a.ask('queued', thread)).length).toBe(2)
    await a.ask('open', threadId)
    expect(await call).toBe('three-0 three-1 ')
    await idle(a)
    const texts = kept(await a.ask('recall', threadId)).filter((line) => line.startsWith('text'))
    expect(texts).toEqual(['text one-0 one-1 one-2 one-3 ', 'text two-0 two-1 ', 'text three say 2', 'text three-0 three-1 '])
  })
})

describe.each([2, 4])('%i processes on one file', (count) => {
  it('[R1.4] never run a thread twice at once, and answer every message once and in order', async () => {
    const members = await cluster(count)
    const threads = Array.from({ length: 5 }, (_, index) => ({ resourceId: 'user-1', threadId: `t${index}` }))
    const rounds = 40 / count
    const sent = await Promise.all(members.map(async (sender, who) => {
      const ids: Array<{ threadId: string; id: string }> = []
      for (let round = 0; round < rounds; round++) {
        for (const target of threads) {
          const id = `${who}-${round}`
          await sender.ask('send', `${target.threadId} say 2`, { ...target, id, ifActive: { behavior: round % 5 === 4 ? 'interrupt' : 'deliver' } })
          ids.push({ threadId: target.threadId, id })
        }
      }
      return ids
    }))
    for (const [who, ids] of sent.entries()) {
      for (const { id } of ids.slice(-5)) expect(await members[who]?.ask('outcome', id)).toMatchObject({ action: expect.stringMatching(/^(woke|delivered)$/) })
    }
    const [first] = members as [Member]
    for (const { threadId: id } of threads) {
      await idle(first, id)
      const signals = kept(await first.ask('recall', id)).filter((line) => line.startsWith('signal ')).map((line) => line.slice(7))
      expect(signals).toHaveLength(count * rounds)
      for (const who of members.keys()) {
        expect(signals.filter((signal) => signal.startsWith(`${who}-`))).toEqual(Array.from({ length: rounds }, (_, round) => `${who}-${round}`))
      }
    }
    const calls = (await Promise.all(members.map((each) => each.ask('calls')))).flat().sort((x, y) => x.from - y.from)
    for (const { threadId: id } of threads) {
      const own = calls.filter(({ about }) => about === id)
      for (const [index, { from }] of own.entries()) expect(from).toBeGreaterThanOrEqual(own[index - 1]?.to ?? 0)
    }
  })
})

import { expect } from 'vitest'
import { open, rejects, thread, type Probe } from '../probe.ts'
import { heed, testing } from '../walked.ts'

const { createTool, InMemoryStore } = heed
const { virtualClock } = testing

const held = () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { gate: promise, release: resolve }
}

const shop = () => {
  const pay = createTool({ id: 'pay', requireApproval: true, execute: () => 'paid' })
  const ask = createTool({ id: 'ask', execute: (_, { resumeData, suspend }) => (resumeData === undefined ? suspend({ q: 1 }) : `answer ${String(resumeData)}`) })
  return { tools: { pay, ask } }
}
const calling = (toolName: string) => [{ toolCalls: [{ toolName, toolCallId: 'c1', input: {} }] }, 'Done.']

export const threads: Probe[] = [
  {
    title: 'the options of watching, steering and aborting a thread',
    async run() {
      const { threadId, resourceId } = thread
      const { gate, release } = held()
      const { agent, idle } = open({}, ({ index }) => (index === 0 ? { text: 'First.', gate } : 'Later.'))
      const subscription = await agent.subscribeToThread({ threadId, resourceId })
      const first = agent.sendMessage('One.', thread)
      await first.outcome
      const [a, b, c] = ['A.', 'B.', 'C.'].map((text) => agent.queueMessage(text, thread))
      await Promise.all([a?.stored, b?.stored, c?.stored])
      const signalIds = [c, b].map((one) => one?.signal.id ?? '')
      expect((await agent.reorderQueued({ threadId, resourceId, signalIds })).slice(0, 2)).toEqual(signalIds)
      expect(await agent.cancelQueued({ threadId, resourceId, signalIds: [a?.signal.id ?? ''] })).toEqual([a?.signal.id])
      expect((await agent.listQueued({ threadId, resourceId })).map(({ id }) => id)).toEqual(signalIds)
      expect(await agent.explain({ threadId, resourceId, signalId: signalIds[0] ?? '' })).toMatchObject({ state: 'pending' })
      expect([await agent.listActiveThreads({ resourceId, limit: 1 }), await agent.listActiveThreads({ resourceId: 'other' })]).toMatchObject([[{ id: threadId }], []])
      expect(await agent.abortRun({ threadId, resourceId, expectedRunId: 'another' })).toMatchObject({ aborted: false })
      expect(agent.abortThreadStream({ threadId, resourceId, expectedRunId: 'another' })).toBe(false)
      expect(() => agent.abortThreadStream({ threadId, resourceId: 'other' })).toThrow('another resource')
      expect(await agent.abortRun({ threadId, resourceId, clearPendingSignals: true, expectedRunId: first.runId })).toMatchObject({ aborted: true })
      release()
      await idle()
      expect(await agent.listQueued({ threadId })).toEqual([])
      subscription.unsubscribe()
      await idle()
      expect(agent.abortThreadStream({ threadId, resourceId, clearPendingSignals: true })).toBe(false)
      await expect(agent.retryParked({ threadId, resourceId, runId: first.runId })).rejects.toMatchObject({ code: 'run_not_parked' })
      for (const call of [
        () => agent.explain({ threadId, resourceId: 'other', signalId: 'x' }), () => agent.activeRun({ threadId, resourceId: 'other' }),
        () => agent.cancelQueued({ threadId, resourceId: 'other', signalIds: ['x'] }), () => agent.reorderQueued({ threadId, resourceId: 'other', signalIds: ['x'] }),
        () => agent.retryParked({ threadId, resourceId: 'other' }),
      ]) await expect(call()).rejects.toMatchObject({ code: 'thread_forbidden' })
      await rejects(() => agent.subscribeToThread({ threadId, before: 'x' } as never), 'before')
      await rejects(() => agent.abortRun({ threadId, runId: 'x' } as never), 'runId')
      await rejects(() => agent.listActiveThreads({ threadId } as never), 'threadId')
    },
  },
  {
    title: 'the fields of a decision, and the filter of suspended runs',
    async run() {
      const { threadId, resourceId } = thread
      const suspended = async (toolName: string) => {
        const clock = virtualClock()
        const opened = open(shop(), calling(toolName), { clock, storage: new InMemoryStore({ clock }) })
        opened.agent.sendMessage('Go.', thread)
        await expect.poll(async () => (await opened.agent.activeRun(thread))?.status).toBe('suspended')
        const filter = { threadId, resourceId, fromDate: new Date(0), toDate: new Date(clock.now()), page: 0, perPage: 5, total: true }
        const { runs, total } = await opened.agent.listSuspendedRuns(filter)
        expect(total).toBe(1)
        for (const other of [{ fromDate: new Date(clock.now() + 1) }, { toDate: new Date(0) }, { page: 1 }, { threadId: 'x' }, { resourceId: 'x' }])
          expect((await opened.agent.listSuspendedRuns({ ...filter, ...other })).runs).toEqual([])
        const { id: approvalId, digest } = runs[0]?.toolCalls[0]?.request ?? { id: '', digest: '' }
        return { ...opened, runId: runs[0]?.runId ?? '', call: { toolCallId: 'c1', approvalId, digest, by: 'ada', resourceId } }
      }
      const wrong = { toolCallId: 'c9', approvalId: 'none', digest: 'none', resourceId: 'other' }

      const one = await suspended('pay')
      for (const [name, value] of Object.entries(wrong))
        await expect(one.agent.sendToolApproval({ ...thread, ...one.call, [name]: value, approved: true }), name).rejects.toBeInstanceOf(Error)
      const decided = await one.agent.sendToolApproval({ id: 'd-1', ...thread, ...one.call, approved: false, declineContext: { reason: 'Too dear.' } })
      expect(decided).toMatchObject({ decided: { by: 'ada' } })
      expect(await one.agent.sendToolApproval({ id: 'd-1', ...thread, ...one.call, approved: false, declineContext: { reason: 'Too dear.' } })).toEqual(decided)
      await one.idle()
      expect(one.lastText()).toContain('Too dear.')

      const said = await suspended('pay')
      await said.agent.sendToolApproval({ ...thread, approved: false, declineContext: { message: 'No money.' } })
      await said.idle()
      expect(said.lastText()).toContain('No money.')

      const two = await suspended('ask')
      await two.agent.sendToolApproval({ ...thread, ...two.call, approved: true, resumeData: 3 })
      await two.idle()
      expect(two.lastText()).toContain('answer 3')

      const three = await suspended('ask')
      for (const [name, value] of Object.entries({ ...wrong, runId: 'none' }))
        await expect(three.agent.sendStreamResume({ ...thread, ...three.call, [name]: value, resumeData: 4 }), name).rejects.toBeInstanceOf(Error)
      const resume = { id: 'd-2', ...thread, ...three.call, runId: three.runId, resumeData: 4 }
      expect(await three.agent.sendStreamResume(resume)).toEqual(await three.agent.sendStreamResume(resume))
      await three.idle()
      expect(three.lastText()).toContain('answer 4')

      const four = await suspended('pay')
      for (const [name, value] of Object.entries({ ...wrong, runId: 'none' })) {
        await expect(four.agent.approveToolCall({ runId: four.runId, ...four.call, [name]: value }), name).rejects.toBeInstanceOf(Error)
        await expect(four.agent.declineToolCall({ runId: four.runId, ...four.call, [name]: value }), name).rejects.toBeInstanceOf(Error)
      }
      await (await four.agent.declineToolCall({ runId: four.runId, ...four.call, reason: 'Not today.' })).text
      expect(four.lastText()).toContain('Not today.')
      const five = await suspended('pay')
      expect(await (await five.agent.approveToolCall({ runId: five.runId, ...five.call })).text).toBe('Done.')
      await rejects(() => five.agent.sendToolApproval({ ...thread, approved: true, why: 1 } as never), 'why')
      await rejects(() => five.agent.listSuspendedRuns({ limit: 1 } as never), 'limit')
    },
  },
]

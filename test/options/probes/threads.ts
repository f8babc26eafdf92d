import { expect } from 'vitest'
import { createTool, InMemoryStore, Memory } from '../../../src/index.ts'
import { virtualClock } from '../../../src/testing/index.ts'
import { open, rejects, thread, type Probe } from '../probe.ts'

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
    covers: {
      SubscribeOptions: 'threadId resourceId',
      'Agent.abortRun': 'threadId resourceId clearPendingSignals expectedRunId',
      'Agent.abortThreadStream': 'threadId resourceId clearPendingSignals expectedRunId',
      Scope: 'threadId resourceId',
      'Agent.listActiveThreads': 'resourceId limit',
      'Agent.cancelQueued': 'threadId resourceId signalIds',
      'Agent.reorderQueued': 'threadId resourceId signalIds',
      'Agent.retryParked': 'threadId resourceId runId',
    },
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
    covers: {
      ToolApproval: 'id resourceId threadId toolCallId approvalId digest by approved declineContext declineContext.reason declineContext.message resumeData',
      CallResume: 'id resourceId threadId runId toolCallId approvalId digest by resumeData',
      SuspendedTarget: 'runId toolCallId approvalId digest by resourceId',
      'Agent.declineToolCall': 'runId toolCallId approvalId digest by resourceId reason',
      SuspendedRunsFilter: 'threadId resourceId fromDate toDate page perPage total',
    },
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
  {
    title: 'the calls of a memory: threads',
    covers: {
      NewThreadArgs: 'resourceId threadId title metadata',
      'Memory.getThreadById': 'threadId resourceId',
      ListThreadsArgs:
        'filter filter.resourceId filter.metadata filter.parentId children resourceId orderBy orderBy.field orderBy.direction page perPage cursor total',
      ThreadUpdate: 'id resourceId title metadata',
      'Memory.deleteThread': 'threadId resourceId',
      'Memory.transferThread': 'threadId resourceId from',
      UnreadClone:
        'sourceThreadId newThreadId resourceId title metadata options options.messageLimit options.messageFilter options.messageFilter.startDate options.messageFilter.endDate options.messageFilter.messageIds readMessages',
      CloneThreadArgs:
        'sourceThreadId newThreadId resourceId title metadata options options.messageLimit options.messageFilter options.messageFilter.startDate options.messageFilter.endDate options.messageFilter.messageIds readMessages',
    },
    async run() {
      const memory = new Memory({ storage: new InMemoryStore() })
      const resourceId = 'u'
      await memory.createThread({ resourceId, threadId: 'a', title: 'Alpha', metadata: { n: 1 } })
      await memory.createThread({ resourceId, threadId: 'b', title: 'Beta', metadata: { n: 2 } })
      await memory.createThread({ resourceId: 'v', threadId: 'c' })
      const ids = async (args: Parameters<typeof memory.listThreads>[0]) => (await memory.listThreads(args)).threads.map(({ id }) => id)
      const up = { orderBy: { field: 'createdAt', direction: 'ASC' } } as const
      expect(await ids({ filter: { resourceId }, ...up })).toEqual(['a', 'b'])
      expect(await ids({ resourceId, orderBy: { field: 'createdAt', direction: 'DESC' } })).toEqual(['b', 'a'])
      expect(await ids({ filter: { metadata: { n: 2 } } })).toEqual(['b'])
      expect(await ids({ filter: { parentId: 'a' }, children: true })).toEqual([])
      const page = await memory.listThreads({ resourceId, ...up, page: 0, perPage: 1, total: true })
      expect([page.threads.map(({ id }) => id), page.total, page.hasMore]).toEqual([['a'], 2, true])
      expect(await ids({ resourceId, ...up, perPage: 1, cursor: page.nextCursor ?? '' })).toEqual(['b'])
      expect(await memory.updateThread({ id: 'a', resourceId, title: 'Gamma', metadata: { m: 3 } })).toMatchObject({ title: 'Gamma', metadata: { n: 1, m: 3 } })
      const dates = ['2026-01-01', '2026-02-01', '2026-03-01'].map((day) => new Date(day))
      const messages = dates.map((createdAt, at) => ({ id: `m-${at}`, threadId: 'a', resourceId, role: 'user' as const, createdAt, content: `Text ${at}` }))
      await memory.saveMessages({ messages: messages as never })
      const copy = { sourceThreadId: 'a', resourceId, title: 'Copy', metadata: { copy: true } }
      const texts = async (options: object) =>
        (await memory.cloneThread({ ...copy, options })).clonedMessages.map(({ content }) => JSON.stringify(content.parts).match(/Text \d/)?.[0])
      expect(await texts({ messageLimit: 1 })).toEqual(['Text 2'])
      expect(await texts({ messageFilter: { startDate: dates[1] } })).toEqual(['Text 1', 'Text 2'])
      expect(await texts({ messageFilter: { endDate: dates[1] } })).toEqual(['Text 0', 'Text 1'])
      expect(await texts({ messageFilter: { messageIds: ['m-0'] } })).toEqual(['Text 0'])
      const unread = await memory.cloneThread({ ...copy, newThreadId: 'd', readMessages: false })
      expect(unread).toMatchObject({ thread: { id: 'd', title: 'Copy', metadata: { copy: true } } })
      expect('clonedMessages' in unread).toBe(false)
      await memory.transferThread({ threadId: 'd', resourceId: 'v', from: resourceId })
      expect(await memory.getThreadById({ threadId: 'd', resourceId: 'v' })).toMatchObject({ resourceId: 'v' })
      expect(await memory.deleteThread({ threadId: 'd', resourceId: 'v' })).toBe(true)
      for (const call of [
        () => memory.getThreadById({ threadId: 'a', resourceId: 'v' }), () => memory.updateThread({ id: 'a', resourceId: 'v', title: 'x' }),
        () => memory.deleteThread({ threadId: 'a', resourceId: 'v' }), () => memory.transferThread({ threadId: 'a', resourceId: 'w', from: 'v' }),
      ]) await expect(call()).rejects.toMatchObject({ code: 'thread_forbidden' })
      for (const [call, name] of [
        [() => memory.createThread({ resourceId, kind: 1 } as never), 'kind'], [() => memory.listThreads({ limit: 1 } as never), 'limit'],
        [() => memory.listThreads({ filter: { title: 'x' } } as never), 'title'], [() => memory.listThreads({ orderBy: { field: 'title' } } as never), 'field'],
        [() => memory.updateThread({ id: 'a', name: 'x' } as never), 'name'], [() => memory.cloneThread({ ...copy, name: 'x' } as never), 'name'],
        [() => memory.cloneThread({ ...copy, options: { limit: 1 } } as never), 'limit'], [() => memory.getThreadById({ threadId: 'a', id: 1 } as never), 'id'],
      ] as const) await rejects(call, name)
    },
  },
  {
    title: 'the calls of a memory: messages and working memory',
    covers: {
      RecallArgs:
        'threadId resourceId page perPage cursor orderBy orderBy.field orderBy.direction filter filter.dateRange filter.dateRange.start filter.dateRange.end filter.dateRange.startExclusive filter.dateRange.endExclusive include vectorSearchString total threadConfig',
      IncludedMessage: 'id threadId withPreviousMessages withNextMessages',
      SaveMessagesArgs: 'messages threadId resourceId',
      UpdateMessagesArgs: 'messages threadId resourceId',
      GivenPatch: 'id role createdAt type content threadId resourceId',
      DeleteMessagesArgs: 'id threadId messageIds resourceId',
      MessageId: 'id threadId',
      WorkingMemoryTarget: 'threadId resourceId',
      WorkingMemoryUpdate: 'threadId resourceId workingMemory replace delete expectedVersion',
      'Memory.listWorkingMemoryVersions': 'threadId resourceId limit before',
      'Memory.undoWorkingMemory': 'threadId resourceId version expectedVersion',
    },
    async run() {
      const schema = { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } } as const
      const memory = new Memory({ storage: new InMemoryStore(), workingMemory: { enabled: true, scope: 'resource', schema } })
      const at = { threadId: 't', resourceId: 'u' }
      const days = ['2026-01-01', '2026-02-01', '2026-03-01', '2026-04-01'].map((day) => new Date(day))
      const messages = days.map((createdAt, index) => ({ id: `m-${index}`, role: 'user' as const, createdAt, content: `Text ${index} about ${['cats', 'dogs', 'fish', 'birds'][index]}` }))
      await memory.createThread(at)
      await memory.saveMessages({ messages: messages as never, ...at })
      const ids = async (args: object) => (await memory.recall({ ...at, perPage: false, ...args })).messages.map(({ id }) => id)
      expect(await ids({})).toEqual(['m-0', 'm-1', 'm-2', 'm-3'])
      expect(await ids({ orderBy: { field: 'createdAt', direction: 'DESC' } })).toEqual(['m-3', 'm-2', 'm-1', 'm-0'])
      const range = (dateRange: object) => ids({ filter: { dateRange } })
      expect(await range({ start: days[1], end: days[2] })).toEqual(['m-1', 'm-2'])
      expect(await range({ start: days[1], startExclusive: true, end: days[3], endExclusive: true })).toEqual(['m-2'])
      const page = await memory.recall({ ...at, page: 1, perPage: 2, total: true })
      expect([page.messages.map(({ id }) => id), page.total]).toEqual([['m-0', 'm-1'], 4])
      const newest = await memory.recall({ ...at, perPage: 2 })
      expect((await memory.recall({ ...at, perPage: 2, cursor: newest.nextCursor ?? '' })).messages.map(({ id }) => id)).toEqual(['m-0', 'm-1'])
      expect(await ids({ perPage: 0, include: [{ id: 'm-1', threadId: 't', withPreviousMessages: 1, withNextMessages: 1 }] })).toEqual(['m-0', 'm-1', 'm-2'])
      expect(await ids({ perPage: 1, vectorSearchString: 'dogs', threadConfig: { semanticRecall: { messageRange: 0 } } })).toEqual(['m-1'])
      const moved = new Date('2026-05-01')
      await memory.updateMessages({ messages: [{ id: 'm-0', content: { parts: [{ type: 'text', text: 'Changed' }] }, createdAt: moved }], ...at })
      const { messages: [changed] } = await memory.recall({ ...at, perPage: 0, include: [{ id: 'm-0' }] })
      expect([JSON.stringify(changed?.content.parts), changed?.createdAt]).toEqual([expect.stringContaining('Changed'), moved])
      const patch = (one: object) => memory.updateMessages({ messages: [{ id: 'm-1', ...one }] as never })
      await expect(patch({ role: 'assistant' })).rejects.toMatchObject({ code: 'invalid_message' })
      for (const one of [{ threadId: 'none' }, { resourceId: 'other' }]) await expect(patch({ content: { content: 'x' }, ...one })).rejects.toBeInstanceOf(Error)
      await expect(memory.deleteMessages([{ id: 'm-0', threadId: 'none' }])).rejects.toMatchObject({ code: 'thread_not_found' })
      expect(await memory.deleteMessages([{ id: 'm-0', threadId: 't' }, 'm-1'] as never)).toBe(2)
      expect(await memory.deleteMessages({ threadId: 't', resourceId: 'u', messageIds: ['m-2'] })).toBe(1)
      await expect(memory.deleteMessages({ threadId: 't', resourceId: 'other' })).rejects.toMatchObject({ code: 'thread_forbidden' })

      await memory.updateWorkingMemory({ ...at, workingMemory: { a: 1, b: 2 } })
      await memory.updateWorkingMemory({ ...at, workingMemory: {}, delete: ['b'], expectedVersion: 1 })
      expect(await memory.getWorkingMemory(at)).toEqual({ a: 1 })
      await memory.updateWorkingMemory({ ...at, workingMemory: { b: 3 }, replace: true })
      expect(await memory.getWorkingMemory({ threadId: 't', resourceId: 'u' })).toEqual({ b: 3 })
      await expect(memory.updateWorkingMemory({ ...at, workingMemory: {}, expectedVersion: 1 })).rejects.toMatchObject({ code: 'working_memory_conflict' })
      const versions = async (more: object) => (await memory.listWorkingMemoryVersions({ ...at, ...more })).map(({ version }) => version)
      expect([await versions({ limit: 1 }), await versions({ before: 3 })]).toEqual([[3], [2, 1]])
      await expect(memory.undoWorkingMemory({ ...at, version: 1, expectedVersion: 1 })).rejects.toMatchObject({ code: 'working_memory_conflict' })
      await memory.undoWorkingMemory({ threadId: 't', resourceId: 'u', version: 1 })
      expect(await memory.getWorkingMemory(at)).toEqual({ a: 1, b: 2 })
      for (const [call, name] of [
        [() => memory.recall({ ...at, limit: 1 } as never), 'limit'], [() => memory.recall({ ...at, filter: { role: 'user' } } as never), 'role'],
        [() => memory.saveMessages({ messages: [], thread: 't' } as never), 'thread'], [() => memory.updateMessages({ messages: [], thread: 't' } as never), 'thread'],
        [() => memory.reindex({ progress: 1 } as never), 'progress'], [() => memory.getWorkingMemory({ ...at, scope: 'x' } as never), 'scope'],
        [() => memory.updateWorkingMemory({ ...at, workingMemory: {}, merge: true } as never), 'merge'],
        [() => memory.listWorkingMemoryVersions({ ...at, after: 1 } as never), 'after'], [() => memory.undoWorkingMemory({ ...at, to: 1 } as never), 'to'],
      ] as const) await rejects(call, name)
    },
  },
]

import { expect } from 'vitest'
import { memory, open, rejects, thread, type Probe } from '../probe.ts'
import { heed, testing } from '../walked.ts'

const { virtualClock } = testing
const { InMemoryStore, RequestContext } = heed

export const sends: Probe[] = [
  {
    title: 'the options of a send',
    async run() {
      const { threadId, resourceId } = thread
      const { agent, model, idle, lastText } = open()
      const ifIdle = { behavior: 'wake' as const, attributes: { now: 'idle' }, streamOptions: { maxSteps: 2, modelSettings: { seed: 5 } } }
      const ifActive = { behavior: 'discard' as const }
      await rejects(() => agent.sendMessage('x', { ...thread, ifActive: { ...ifActive, attributes: { now: 'active' } } }), 'ifActive.attributes')
      await rejects(() => agent.sendMessage('x', { ...thread, ifIdle: { behavior: 'discard', attributes: { now: 'idle' } } }), 'ifIdle.attributes')
      const woke = agent.sendMessage('One.', { threadId, resourceId, ifIdle, ifActive })
      expect(await agent.sendMessage('Not now.', { runId: woke.runId, ifActive }).outcome).toMatchObject({ action: 'discarded' })
      expect(await woke.outcome).toMatchObject({ action: 'woke' })
      await idle()
      expect([lastText(), model.calls[0]?.seed]).toEqual(['<user now="idle">One.</user>', 5])
      const first = agent.sendMessage('Two.', thread)
      await Promise.all([first.outcome, agent.sendMessage('Three.', { ...thread, ifActive: { attributes: { now: 'active' } } }).outcome])
      await idle()
      expect(lastText()).toBe('<user now="active">Three.</user>')
      expect(await agent.sendMessage('x', { runId: 'none' }).outcome).toMatchObject({ action: 'rejected', code: 'no_active_run' })
      await rejects(() => agent.sendMessage('x', { threadId } as never), 'resourceId')
      await rejects(() => agent.sendMessage('x', { resourceId } as never), 'threadId')
      for (const option of ['ifActiv', 'ifIdle.when', 'ifActive.when']) {
        const [name = '', inner] = option.split('.')
        await rejects(() => agent.sendMessage('x', { ...thread, [name]: inner ? { [inner]: 1 } : 1 } as never), option)
      }
    },
  },
  {
    title: 'the fields of a message and of a signal',
    async run() {
      const { agent, model, idle, lastText } = open()
      const providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }
      const about = { attributes: { from: 'slack' }, metadata: { seen: true }, providerOptions }
      await agent.sendMessage({ id: 'm-1', contents: 'One.', ...about }, thread).outcome
      await idle()
      expect(lastText()).toBe('<user from="slack">One.</user>')
      expect(model.calls[0]?.prompt.at(-1)?.providerOptions).toEqual(providerOptions)
      expect((await agent.sendMessage({ id: 'm-1', contents: 'One.' }, thread).outcome).duplicate).toBe(true)
      await agent.sendSignal({ type: 'notification', tagName: 'review', id: 's-1', contents: 'Two.', ...about }, thread).outcome
      await idle()
      expect(lastText()).toBe('<review from="slack">Two.</review>')
      await agent.sendSignal({ type: 'reactive', contents: 'Once.', transient: true }, thread).outcome
      await idle()
      expect(lastText()).toBe('<system-reminder>Once.</system-reminder>')
      const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
      const stored = messages.filter(({ role }) => role === 'signal').map(({ content }) => content.metadata?.signal)
      expect(stored.slice(0, 2)).toMatchObject([{ id: 'm-1', type: 'user', metadata: { seen: true } }, { id: 's-1', type: 'notification', metadata: { seen: true } }])
      await rejects(() => agent.sendMessage({ contents: 'x', kind: 1 } as never, thread), 'kind')
      await rejects(() => agent.sendSignal({ type: 'other' as never, contents: 'x' }, thread), 'type')
    },
  },
  {
    title: 'the fields of a state, and the lanes that show them',
    async run() {
      const { threadId, resourceId } = thread
      const { agent, idle, lastText, model } = open()
      const keep = { ...thread, ifIdle: { behavior: 'persist' as const } }
      const providerOptions = { x: { y: 1 } }
      const about = { tagName: 'tabs', attributes: { n: 1 }, metadata: { by: 'me' }, providerOptions }
      await agent.sendStateSignal({ id: 'browser', signalId: 's-1', cacheKey: 'a', mode: 'snapshot', contents: 'One tab.', value: { tabs: 1 }, ...about }, thread)
      await idle()
      expect([lastText(), model.calls[0]?.prompt.at(-1)?.providerOptions]).toEqual(['<tabs n="1">One tab.</tabs>', providerOptions])
      expect(await agent.sendStateSignal({ id: 'browser', cacheKey: 'a', contents: 'One tab.' }, keep)).toMatchObject({ skipped: true })
      await agent.sendStateSignal({ id: 'browser', cacheKey: 'b', mode: 'delta', contents: 'One more.', delta: { tabs: 2 } }, keep)
      await agent.sendStateSignal({ id: 'editor', cacheKey: 'c', contents: 'A file.' }, keep)
      const lane = await agent.getLane({ threadId, resourceId, id: 'browser' })
      expect(lane).toMatchObject({ id: 'browser', cacheKey: 'b', mode: 'delta', lastSnapshotId: 's-1', snapshot: { value: { tabs: 1 } } })
      expect((await agent.listLanes({ threadId, resourceId, limit: 1 })).map(({ id }) => id)).toEqual(['browser'])
      expect((await agent.listLanes({ threadId, resourceId, after: 'browser' })).map(({ id }) => id)).toEqual(['editor'])
      const page = await agent.listLaneHistory({ threadId, resourceId, id: 'browser', limit: 1 })
      expect(page).toMatchObject({ signals: [{ version: 2, delta: { tabs: 2 } }], more: true })
      expect((await agent.listLaneHistory({ threadId, resourceId, id: 'browser', before: 2 })).signals.map(({ version }) => version)).toEqual([1])
      for (const call of [
        () => agent.getLane({ threadId, resourceId: 'other', id: 'browser' }), () => agent.listLanes({ threadId, resourceId: 'other' }),
        () => agent.listLaneHistory({ threadId, resourceId: 'other', id: 'browser' }),
      ]) await expect(call()).rejects.toMatchObject({ code: 'thread_forbidden' })
      await rejects(() => agent.sendStateSignal({ id: 'x', cacheKey: 'y', contents: 'z', when: 1 } as never, thread), 'when')
      await rejects(() => agent.listLanes({ threadId, before: 1 } as never), 'before')
    },
  },
  {
    title: 'the fields of a notification, alone and in a list, and its target',
    async run() {
      const { threadId, resourceId } = thread
      const { agent, model, idle, lastText } = open()
      const inbox = await agent.subscribeToInbox({ resourceId, threadId })
      const event = { source: 'ci', kind: 'status', payload: { n: 1 }, attributes: { branch: 'main' }, metadata: { team: 'a' } }
      await agent.sendNotificationSignal({ ...event, summary: 'Elsewhere.', priority: 'low' }, { ...thread, threadId: 'thread-2' })
      const about = { thread: { id: threadId, title: 'Builds', metadata: { kind: 'ci' } }, resource: resourceId, options: { lastMessages: 3 } }
      const ifIdle = { streamOptions: { modelSettings: { seed: 9 }, memory: about } }
      const { record } = await agent.sendNotificationSignal({ id: 'n-1', priority: 'urgent', summary: 'Failed.', ...event }, { threadId, resourceId, ifIdle })
      await idle()
      expect(record).toMatchObject({ id: 'n-1', payload: { n: 1 }, metadata: { team: 'a' } })
      expect(lastText()).toBe('<notification source="ci" type="status" priority="urgent" status="delivered" branch="main">Failed.</notification>')
      expect(model.calls[0]?.seed).toBe(9)
      expect(await (await agent.getMemory()).getThreadById({ threadId })).toMatchObject({ title: 'Builds', metadata: { kind: 'ci' } })
      const [one, two] = await agent.sendNotificationSignal(
        [{ ...event, id: 'n-2', summary: 'A.', priority: 'low', dedupeKey: 'k' }, { ...event, summary: 'A.', priority: 'low', dedupeKey: 'k' }], thread,
      )
      expect([one?.record.id, two?.record.id]).toEqual(['n-2', 'n-2'])
      const join = { ...event, priority: 'low' as const, coalesceKey: 'c' }
      await agent.sendNotificationSignal({ ...join, summary: 'Old.' }, thread)
      expect((await agent.sendNotificationSignal({ ...join, summary: 'New.' }, thread)).record).toMatchObject({ summary: 'New.', coalesceKey: 'c' })
      for await (const { cursor, record: changed } of inbox.stream) {
        expect(changed.id).toBe('n-1')
        const later = await agent.subscribeToInbox({ resourceId, threadId, after: cursor })
        for await (const next of later.stream) {
          expect(next.record.id).not.toBe('n-1')
          break
        }
        break
      }
      await rejects(() => agent.sendNotificationSignal({ ...event, summary: 'x', when: 1 } as never, thread), 'when')
      await rejects(() => agent.sendNotificationSignal({ ...event, summary: 'x' }, { threadId } as never), 'resourceId')
      await rejects(() => agent.sendNotificationSignal({ ...event, summary: 'x' }, { ...thread, ifIdle: { behavior: 'wake' } } as never), 'behavior')
      await rejects(() => agent.subscribeToInbox({ resourceId, before: 1 } as never), 'before')
    },
  },
  {
    title: 'the fields of a schedule, and the queries of schedules',
    async run() {
      const { threadId, resourceId } = thread
      const clock = virtualClock()
      const { agent, model, lastText } = open({}, () => 'Fine.', { clock, storage: new InMemoryStore({ clock }) })
      const { schedules } = agent
      const at = new Date(clock.now() + 1_000)
      await schedules.create({ id: 'a', threadId, resourceId, message: 'Now.', at, overlap: 'skip', missed: 'once' })
      await clock.advance(1_000)
      await expect.poll(async () => (await clock.advance(0), model.callCount)).toBe(1)
      expect(lastText()).toBe('Now.')
      const every = await schedules.create({ ...thread, id: 'b', signal: { type: 'notification', contents: 'Look.' }, every: 60_000 })
      expect(every).toMatchObject({ timing: { every: 60_000 }, signal: { contents: 'Look.' }, nextAt: new Date(clock.now() + 60_000) })
      const daily = { ...thread, id: 'c', message: 'Morning.', cron: '30 7 * * *', timeZone: 'Europe/Zurich', overlap: 'replace', missed: 'skip' } as const
      expect((await schedules.createOnce(daily)).schedule).toMatchObject({ overlap: 'replace', missed: 'skip', nextAt: new Date('2026-01-01T06:30:00Z') })
      expect(await schedules.createOnce({ ...daily, cron: '0 8 * * *' })).toMatchObject({ created: false, differs: true, schedule: { timing: { cron: '30 7 * * *' } } })
      expect(await schedules.createOnce({ ...thread, id: 'd', every: 5_000, signal: { type: 'reactive', contents: 'x' } })).toMatchObject({ created: true })
      expect(await schedules.createOnce({ ...thread, id: 'e', at, message: 'x' })).toMatchObject({ created: true })
      const ids = async (query: Parameters<typeof schedules.list>[0]) => (await schedules.list(query)).schedules.map(({ id }) => id)
      expect(await ids({ resourceId, threadId, limit: 2 })).toEqual(['a', 'b'])
      expect(await ids({ after: 'c', status: 'active' })).not.toContain('a')
      expect(await ids({ status: 'done' })).toContain('a')
      expect([await ids({ resourceId: 'other' }), await ids({ threadId: 'other' })]).toEqual([[], []])
      expect(await schedules.get({ id: 'b', resourceId: 'other' })).toBeNull()
      expect(await schedules.remove({ id: 'b', resourceId })).toBe(true)
      await rejects(() => schedules.create({ ...thread, every: 5_000, message: 'x', when: 1 } as never), 'when')
      await rejects(() => schedules.list({ before: 'x' } as never), 'before')
      await rejects(() => schedules.get({ id: 'a', threadId } as never), 'threadId')
    },
  },
  {
    title: 'a run of an unknown option of a send is not started',
    async run() {
      const { agent } = open({ metadata: ({ requestContext }) => ({ plan: requestContext.get('plan') }) })
      expect(await agent.getMetadata({ requestContext: new RequestContext({ plan: 'gold' }) })).toEqual({ plan: 'gold' })
      await rejects(() => agent.getMetadata({ context: 1 } as never), 'context')
      await rejects(() => agent.sendMessage('x', { ...thread, ifIdle: { streamOptions: { maxStep: 1 } as never } }), 'maxStep')
      await rejects(() => agent.generate('x', { memory: { ...memory, thred: 1 } as never }), 'thred')
    },
  },
]

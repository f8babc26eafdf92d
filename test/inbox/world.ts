import { Agent, type AgentConfig, type HeedConfig, type NotificationInput, type NotificationStore } from '../../src/index.ts'
import { notificationStoreOf } from '../../src/store/contract/storage.ts'
import { scriptedModel, virtualClock } from '../../src/testing/index.ts'
import { openHeed, type PlaceKind } from '../thread/places.ts'
import { gate, idle, soon, userTexts } from '../thread/said.ts'

export const thread = { resourceId: 'user-1', threadId: 'thread-1' }

export const ci: NotificationInput = { source: 'github', kind: 'ci-status', summary: 'CI failed on main: 3 tests failed.' }

export type World = Awaited<ReturnType<typeof openWorld>>

/** An agent on a clock that stands still. Its first answer can be held, so that its thread is active. */
export async function openWorld(make: PlaceKind['make'], config: Pick<AgentConfig, 'notifications' | 'tools' | 'inputProcessors'> = {}, notifications?: HeedConfig['notifications'], start?: Date) {
  const clock = virtualClock(start)
  const hold = gate()
  let held = false
  const model = scriptedModel(() => {
    if (!held) return 'Noted.'
    held = false
    return { text: 'Working.', gate: hold.promise }
  })
  const agent = new Agent({ id: 'support', model, ...config })
  const storage = make({ clock }).store()
  const heed = openHeed({ agent }, storage, { clock, ...(notifications ? { notifications } : {}) })
  const inbox = (await notificationStoreOf(storage)) as NotificationStore
  return {
    clock, model, agent, heed, inbox, storage,
    /** What the model read in its last call. */
    read: () => userTexts(model.calls.at(-1)),
    calls: () => model.callCount,
    async work() {
      held = true
      await agent.sendMessage('Work.', thread).outcome
      await soon(() => model.callCount).toBe(1)
    },
    async rest() {
      hold.open()
      await idle(agent, thread)
    },
    /** Signals in history, as the model reads them. */
    async history(): Promise<string[]> {
      const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
      return messages.flatMap(({ role, type }) => (role === 'signal' ? [String(type)] : []))
    },
    list: async () => (await inbox.listNotifications({ ...thread, limit: 100 })).notifications,
    /** How many records a summary has counted. Timers that were set for now fire on the way. */
    async summarised(): Promise<number> {
      await clock.advance(0)
      return (await inbox.listNotifications({ ...thread, limit: 100 })).notifications.filter(({ summarySignalId }) => summarySignalId !== undefined).length
    },
  }
}

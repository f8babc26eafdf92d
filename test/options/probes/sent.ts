import { expect } from 'vitest'
import type { Agent } from '../../../src/index.ts'
import { open, rejects, thread, type Probe } from '../probe.ts'
import { heed } from '../walked.ts'

type Sent = { runId?: string; outcome: Promise<{ action: string; code?: string }> }
interface Door {
  send(agent: Agent, text: string, options: object): Sent | Promise<Sent>
  /** It waits for the active run: to interrupt that has no effect, and is rejected by name. */
  queues?: true
}

let states = 0
const doors: Record<string, Door> = {
  sendMessage: { send: (agent, text, options) => agent.sendMessage(text, options as never) },
  queueMessage: { send: (agent, text, options) => agent.queueMessage(text, options as never), queues: true },
  sendSignal: { send: (agent, text, options) => agent.sendSignal({ type: 'notification', tagName: 'note', contents: text }, options as never) },
  sendStateSignal: {
    send: async (agent, text, options) => (await agent.sendStateSignal({ id: 'lane', cacheKey: `key-${states++}`, contents: text, tagName: 'note' }, options as never)) as Sent,
  },
}

/** An agent whose first answer waits until it is released. */
function working() {
  const { promise: gate, resolve: release } = Promise.withResolvers<void>()
  return { ...open({}, ({ index }) => (index === 0 ? { text: 'First.', gate } : 'Later.')), release }
}

const shownFor: Record<string, (door: Door) => Promise<void>> = {
  async 'on an idle thread'({ send }) {
    const { agent, idle, lastText } = open()
    expect(await (await send(agent, 'One.', { ...thread, ifIdle: { behavior: 'discard' } })).outcome).toMatchObject({ action: 'discarded' })
    await (await send(agent, 'Two.', { ...thread, ifIdle: { attributes: { now: 'idle' } } })).outcome
    await idle()
    expect(lastText()).toMatch(/^<\w+ now="idle">Two\.<\/\w+>$/)
  },
  async 'during a run'({ send, queues }) {
    const { agent, idle, lastText, release, model } = working()
    const first = agent.sendMessage('Begin.', thread)
    await expect.poll(() => model.callCount).toBe(1)
    const discarding = () => send(agent, 'One.', { ...thread, ifActive: { behavior: 'discard' } })
    const described = () => send(agent, 'Two.', { ...thread, ifActive: { attributes: { now: 'active' } } })
    const named = (runId: string | undefined) => send(agent, 'Three.', { runId })
    expect(await (await discarding()).outcome).toMatchObject({ action: 'discarded' })
    if (queues) await rejects(() => send(agent, 'One.', { ...thread, ifActive: { behavior: 'interrupt' } }), 'behavior')
    const sent = await described()
    release()
    await sent.outcome
    await idle()
    expect(lastText()).toMatch(/^<\w+ now="active">Two\.<\/\w+>$/)
    const refused = await (async () => (await named(first.runId)).outcome)().catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: 'no_active_run' })
  },
}

/** What decides how signals enter a thread, through every call that sends one. */
export const sent: Probe[] = Object.entries(doors).flatMap(([name, door]) =>
  Object.entries(shownFor).map(([what, show]) => ({ title: `Agent.${name}: what holds ${what}`, run: () => show(door) })))

const providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }
const about = { attributes: { from: 'slack' }, metadata: { seen: true }, providerOptions }

const inputs: Record<string, { send(agent: Agent, fields: object): Sent; tag: string }> = {
  sendMessage: { send: (agent, fields) => agent.sendMessage({ contents: 'One.', ...fields }, thread), tag: 'user' },
  queueMessage: { send: (agent, fields) => agent.queueMessage({ contents: 'One.', ...fields }, thread), tag: 'user' },
  sendSignal: { send: (agent, fields) => agent.sendSignal({ type: 'notification', tagName: 'note', contents: 'One.', ...fields }, thread), tag: 'note' },
}

/** The fields of what is sent, through every call that sends it. */
export const sentInput: Probe[] = Object.entries(inputs).map(([name, { send, tag }]) => ({
  title: `Agent.${name}: the fields of its input`,
  async run() {
    const { agent, model, idle, lastText } = open()
    await send(agent, { id: 'm-1', ...about }).outcome
    await idle()
    expect(lastText()).toBe(`<${tag} from="slack">One.</${tag}>`)
    expect(model.calls[0]?.prompt.at(-1)?.providerOptions).toEqual(providerOptions)
    expect(await send(agent, { id: 'm-1', ...about }).outcome).toMatchObject({ duplicate: true })
    const { messages } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(messages[0]?.content.metadata?.signal).toMatchObject({ id: 'm-1', metadata: { seen: true } })
    if (name !== 'sendSignal') return
    await send(agent, { id: 'm-2', contents: 'Once.', transient: true }).outcome
    await idle()
    expect(lastText()).toContain('Once.')
    const { messages: shown } = await (await agent.getMemory()).recall({ ...thread, perPage: false })
    expect(JSON.stringify(heed.toUIMessages(shown))).not.toContain('Once.')
  },
}))

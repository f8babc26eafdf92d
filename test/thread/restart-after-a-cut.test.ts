import { describe, expect, it } from 'vitest'
import { Agent, createTool } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, sharedPlaceKinds, type Place } from './places.ts'
import { gate, idle, isType, readUntil, soon, userTexts } from './said.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

/** Never ends what it says to "First." and takes as many words to anything else; in `hang`, those never end either. */
function teller(options: { hang?: boolean } = {}) {
  const model = scriptedModel((call) => {
    const heard = userTexts(call)
    if (heard.at(-1) === 'First.') return { text: ['Once upon ', 'a time'], hang: { parts: 2 } }
    if (heard.at(-1) === 'Look.' && call.prompt.at(-1)?.role === 'user') return { toolCalls: [{ toolName: 'look', toolCallId: `look-${heard.length}` }] }
    return { text: `Heard ${heard.length}.`, hang: options.hang ?? false }
  })
  const looking = gate()
  const seen = gate()
  const look = createTool({
    id: 'look',
    async execute() {
      looking.open()
      await seen.promise
      return 'a view'
    },
  })
  return { agent: new Agent({ id: 'teller', model, tools: { look } }), model, looking, seen, prompts: () => model.calls.map(({ prompt }) => JSON.stringify(prompt)) }
}

type Teller = ReturnType<typeof teller>

async function untilItSpeaks(agent: Agent) {
  const watcher = await agent.subscribeToThread(thread)
  agent.sendMessage('First.', thread)
  await readUntil(watcher.stream, isType('text-delta'))
  return watcher
}

/** Each leads to a second call of the model. */
const cuts: Array<{ name: string; cut: (teller: Teller) => Promise<void> }> = [
  {
    name: 'an interrupt',
    cut: async ({ agent }) => {
      await untilItSpeaks(agent)
      await agent.sendMessage('Second.', { ...thread, ifActive: { behavior: 'interrupt' } }).outcome
    },
  },
  {
    name: 'an abort, with a turn in the queue',
    cut: async ({ agent }) => {
      const watcher = await untilItSpeaks(agent)
      await agent.queueMessage('Second.', thread).stored
      watcher.abort()
    },
  },
  {
    name: 'the last step that was allowed, with a message that came during it',
    cut: async ({ agent, looking, seen }) => {
      agent.sendMessage('Look.', { ...thread, ifIdle: { behavior: 'wake', streamOptions: { maxSteps: 1 } } })
      await looking.promise
      await agent.sendMessage('Second.', thread).stored
      seen.open()
    },
  },
]

describe.each(sharedPlaceKinds())('a thread whose process ended after a cut, $name', ({ make }) => {
  it.each(cuts)('[R5.2] continues with the same bytes after $name', async ({ cut }) => {
    const run = async (place: Place, here: Teller) => {
      const heed = openHeed({ agent: here.agent }, place.store())
      await cut(here)
      await soon(() => here.model.callCount).toBe(2)
      return heed
    }
    const whole = teller()
    const unbroken = await run(make(), whole)
    await idle(whole.agent, thread)
    await unbroken.close()

    const place = make()
    const before = teller({ hang: true })
    await (await run(place, before)).close()
    const after = teller()
    await openHeed({ agent: after.agent }, place.store()).start()
    await soon(() => after.model.callCount).toBe(1)
    await idle(after.agent, thread)

    expect(before.prompts()).toEqual(whole.prompts())
    expect(after.prompts()).toEqual(whole.prompts().slice(1))
    expect(userTexts(after.model.calls[0]).at(-1)).toBe('Second.')
  })
})

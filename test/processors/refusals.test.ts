import { describe, expect, it } from 'vitest'
import { openHeed, placeKinds } from '../thread/places.ts'
import { collect, types } from '../thread/said.ts'
import { approving, guarded, places, startOf, thread } from './guarded.ts'
import { expectNothingOf } from './refused.ts'

describe.each(placeKinds())('a refusal, $name', ({ make }) => {
  it.each(places)('[R7.2] of %s leaves nothing of what it refuses in history, lanes, recall or working memory, however many steps were stored; what waited is answered', async (place) => {
    const { agent, agents, model } = guarded(place)
    openHeed(agents, make().store())
    void approving(agent)
    const seen = collect(await agent.subscribeToThread(thread))
    await agent.generate('Before.', { memory: { thread: 't', resource: 'u' } })
    agent.queueMessage({ id: 'first', contents: startOf(place) }, thread)
    agent.queueMessage({ id: 'then', contents: 'Then.' }, thread)
    await expectNothingOf(place, agent)
    expect(types(seen.chunks).filter((type) => type === 'tripwire')).toHaveLength(1)
    expect(types(seen.chunks).filter((type) => type === 'tool-call-approval')).toHaveLength(place === 'output result after an approval' ? 1 : 0)
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).not.toContain('FORBIDDEN')
  })
})

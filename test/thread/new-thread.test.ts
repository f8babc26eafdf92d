import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from '../http/serving.ts'
import { openHeed, placeKinds } from './places.ts'

describe.each(placeKinds())('a thread that has received no send, $name', ({ make }) => {
  it('[R4.3] has no pending signal, run or lane, and causes no error', async () => {
    const agent = new Agent({ id: 'a', model: scriptedModel([]) })
    openHeed({ agent }, make().store())
    for (const scope of [{ threadId: 'new', resourceId: 'u' }, { threadId: 'new' }]) {
      expect(await agent.listQueued(scope)).toEqual([])
      expect(await agent.cancelQueued({ ...scope, signalIds: ['s'] })).toEqual([])
      expect(await agent.reorderQueued({ ...scope, signalIds: ['s'] })).toEqual([])
      expect(await agent.explain({ ...scope, signalId: 's' })).toBeNull()
      expect(await agent.activeRun(scope)).toBeNull()
      expect(await agent.abortRun(scope)).toEqual({ aborted: false })
      expect(await agent.listLanes(scope)).toEqual([])
    }
  })

  it('[R4.3] is thread_not_found over HTTP where a request names something in it', async () => {
    const { ask } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) })
    const path = '/agents/guide/threads/new'
    const bodies = [ask(`${path}/queue/cancel`, { json: { resourceId: 'u', signalIds: ['s'] } }), ask(`${path}/queue/reorder`, { json: { resourceId: 'u', signalIds: ['s'] } }), ask(`${path}/signals/s?resourceId=u`), ask(`${path}/lanes?resourceId=u`)]
    for (const answer of await Promise.all(bodies)) expect([answer.status, await answer.json()]).toMatchObject([404, { code: 'thread_not_found' }])
  })

  it('[R4.3] has an empty queue and no active run over HTTP, as a page shows it', async () => {
    const { ask } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) })
    const answers = await Promise.all(['queue', 'active-run'].map((what) => ask(`/agents/guide/threads/new/${what}?resourceId=u`)))
    expect(await Promise.all(answers.map(async (answer) => [answer.status, await answer.json()]))).toEqual([[200, { queued: [] }], [200, { run: null }]])
  })
})

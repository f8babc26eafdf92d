import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent } from '../../src/index.ts'
import { apiKeys } from '../../src/http/server.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const keys = { owner: 'a-long-random-key-1', stranger: 'a-long-random-key-2' }
const auth = apiKeys({ [keys.owner]: { id: 'owner', resources: ['user-1'] }, [keys.stranger]: { id: 'stranger', resources: ['user-2'] } })
const as = (who: keyof typeof keys) => ({ authorization: `Bearer ${keys[who]}` })

async function world() {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['Secret.'], { loop: true }) })
  const { ask } = await served({ guide: agent }, { auth, heartbeatMs: 10 })
  const say = async (threadId: string) => {
    expect((await ask('/agents/guide/send-message?wait=outcome', { json: { message: 'Secret', threadId }, headers: as('owner') })).status).toBe(200)
    await expect.poll(() => agent.activeRun({ threadId, resourceId: 'user-1' })).toBeNull()
  }
  return { ask, say }
}

type Asked = Awaited<ReturnType<typeof world>>['ask']

const forms: Array<[string, (ask: Asked, threadId: string) => Promise<Response>]> = [
  ['POST', (ask, threadId) => ask('/agents/guide/threads/subscribe', { json: { threadId }, headers: as('stranger') })],
  ['POST with a snapshot', (ask, threadId) => ask('/agents/guide/threads/subscribe', { json: { threadId, snapshot: true }, headers: as('stranger') })],
  ['POST after a cursor', (ask, threadId) => ask('/agents/guide/threads/subscribe', { json: { threadId, after: '1.1' }, headers: as('stranger') })],
  ['POST after no cursor', (ask, threadId) => ask('/agents/guide/threads/subscribe', { json: { threadId, after: 'rubbish' }, headers: as('stranger') })],
  ['GET', (ask, threadId) => ask(`/agents/guide/threads/${threadId}/subscribe`, { headers: as('stranger') })],
  ['GET with a snapshot', (ask, threadId) => ask(`/agents/guide/threads/${threadId}/subscribe?snapshot=true`, { headers: as('stranger') })],
  ['GET after a cursor', (ask, threadId) => ask(`/agents/guide/threads/${threadId}/subscribe`, { headers: { ...as('stranger'), 'last-event-id': '1.1' } })],
]

/** Reads until so many heartbeats arrived; the rest can be read on. */
function listener(response: Response) {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  onTestFinished(() => reader?.cancel())
  let heard = ''
  const beats = () => heard.split(': heartbeat\n\n').length - 1
  return async (more: number) => {
    const wanted = beats() + more
    while (beats() < wanted) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
      if (done) throw new Error(`The stream ended after ${JSON.stringify(heard)}`)
      heard += value
    }
    return heard.replaceAll(': heartbeat\n\n', '')
  }
}

const headersOf = (response: Response) => Object.fromEntries([...response.headers].filter(([name]) => name !== 'date'))

describe('a thread of another resource', () => {
  it.each(forms)('[H3.4] is watched like one that is not there, by %s', async (_form, subscribe) => {
    const { ask, say } = await world()
    await say('theirs')
    const foreign = await subscribe(ask, 'theirs')
    const absent = await subscribe(ask, 'nobodys')
    expect([foreign.status, headersOf(foreign)]).toEqual([absent.status, headersOf(absent)])
    if (foreign.status !== 200) return expect(await foreign.text()).toBe(await absent.text())
    const [ofForeign, ofAbsent] = [listener(foreign), listener(absent)]
    await Promise.all([ofForeign(2), ofAbsent(2)])
    await say('theirs')
    const [told, toldOfNobody] = [await ofForeign(3), await ofAbsent(3)]
    expect(told).toContain(': connected')
    expect(told).not.toContain('Secret')
    expect(told.replaceAll('theirs', '…')).toBe(toldOfNobody.replaceAll('nobodys', '…'))
  })

  it('[H3.4] tells nothing when it begins while it is watched', async () => {
    const { ask, say } = await world()
    for (const [form, subscribe] of forms.filter(([name]) => name === 'POST' || name === 'GET')) {
      const told = listener(await subscribe(ask, form))
      await told(1)
      await say(form)
      expect(await told(3)).toBe(form === 'GET' ? ': connected\n\nid: 0.0\n\n' : ': connected\n\n')
    }
  })

  it('[H3.4] is refused by name to a principal that may access every resource', async () => {
    const { ask } = await served({ guide: new Agent({ id: 'guide', model: scriptedModel(['Hello.']) }) })
    await ask('/agents/guide/send-message', { json: { message: 'Hi', threadId: 't', resourceId: 'user-1' } })
    const refused = await ask('/agents/guide/threads/subscribe', { json: { threadId: 't', resourceId: 'user-2' } })
    expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'thread_forbidden' }])
  })
})

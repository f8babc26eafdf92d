import { expect, it, onTestFinished } from 'vitest'
import { Channel, directChannel } from '../../src/channel/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys, serve } from '../../src/http/server.ts'
import { Agent, Heed, HeedError, InMemoryStore, silentLogger } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { said } from '../channel/answering.ts'
import { soon } from '../thread/said.ts'

const keys = { ada: 'key-of-ada-000000000000', bob: 'key-of-bob-000000000000' }

it('[V3.17] [H3.2] dead replies are listed and sent again over HTTP, by principals of their resource', async () => {
  let attempts = 0
  const phone = directChannel({
    kind: 'sms',
    async send() {
      if (++attempts === 1) throw new HeedError('provider_error', 'Blocked.', { details: { status: 403, maybeSent: false } })
      return { providerId: 'out' }
    },
  })
  const agent = new Agent({ id: 'guide', model: scriptedModel(() => 'Fine.') })
  const channel = new Channel({ id: 'phone', adapter: phone, resourceId: 'ada', mode: 'message', agent })
  const heed = new Heed({ agents: { guide: agent }, storage: new InMemoryStore(), logger: silentLogger, channels: [channel] })
  const auth = apiKeys({ [keys.ada]: { id: 'ada', resources: ['ada'] }, [keys.bob]: { id: 'bob', resources: ['bob'] } })
  const server = await serve(heed, { port: 0, handleSignals: false, auth })
  onTestFinished(() => server.close())
  const [ada, bob] = Object.values(keys).map((key) => new HeedClient({ baseUrl: server.url, headers: { authorization: `Bearer ${key}` } })) as [HeedClient, HeedClient]
  await phone.deliver(said('1'), said('2', 'x', { automatic: true }))
  await soon(async () => (await ada.listReplies({ state: 'dead' })).replies.length).toBe(1)
  const { replies: [dead] } = await ada.listReplies({ state: 'dead', channelId: 'phone', limit: 1, after: 0 })
  expect(dead).toMatchObject({ text: 'Fine.', error: { code: 'provider_error', status: 403 }, createdAt: expect.any(String) as string })
  const id = dead?.id ?? ''
  expect(await ada.listReplies({ limit: 1 })).toMatchObject({ replies: [{ id }], more: true })
  expect((await bob.listReplies()).replies).toEqual([])
  await expect(bob.retryReply({ id })).rejects.toMatchObject({ code: 'not_found' })
  await expect(bob.listReplies({ resourceId: 'ada' })).rejects.toMatchObject({ code: 'forbidden' })
  expect(await ada.retryReply({ id })).toMatchObject({ id, state: 'pending' })
  await soon(async () => (await ada.listReplies({ threadId: dead?.threadId, state: 'sent' })).replies.length).toBe(1)
  expect(await ada.retryReply({ id, resourceId: 'ada' })).toMatchObject({ state: 'sent' })
  expect(attempts).toBe(2)
})

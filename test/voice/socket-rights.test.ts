import { describe, expect, it, onTestFinished } from 'vitest'
import { HeedClient } from '../../src/client/index.ts'
import { apiKeys, type Principal } from '../../src/http/server.ts'
import { silentLogger } from '../../src/index.ts'
import { CedarPolicies } from '../../src/policy/index.ts'
import { ticketPrefix, voiceProtocol } from '../../src/voice/wire.ts'
import { calling, play, thread, turns } from './calling.ts'
import { silence, soundOf, toneSpeech } from './voices.ts'
import { dialled } from './wire-client.ts'

const principals = {
  user: { id: 'user', resources: ['user-1'], scopes: ['read', 'send'] },
  other: { id: 'other', resources: ['user-1'], scopes: ['read', 'send'] },
  stranger: { id: 'stranger', resources: ['user-2'] },
  reader: { id: 'reader', resources: ['user-1'], scopes: ['read'] },
  sender: { id: 'sender', resources: ['user-1'], scopes: ['send'] },
} satisfies Record<string, Principal>
type Who = keyof typeof principals
const keyOf = (who: Who) => `key-of-${who}-0000000000`
const as = (who: Who) => ({ authorization: `Bearer ${keyOf(who)}` })
const auth = apiKeys(Object.fromEntries(Object.entries(principals).map(([who, principal]) => [keyOf(who as Who), principal])))
const path = `/api/agents/guide/threads/${thread.threadId}/voice`

async function ticketOf(url: string, who: Who, route = `${path}/ticket`): Promise<{ status: number; ticket: string; code?: string }> {
  const response = await fetch(url + route, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json', ...as(who) } })
  return { status: response.status, ...((await response.json()) as { ticket: string }) }
}

describe('who may open a session', () => {
  it('[Z5.1] credentials in a header or a ticket as a subprotocol; none, wrong ones and those of a stream do not open it', async () => {
    const { server } = await calling([], { serve: { auth } })
    expect((await dialled(server.url)).isOpen).toBe(false)
    expect((await dialled(server.url, { headers: { authorization: 'Bearer nonsense-nonsense' } })).isOpen).toBe(false)
    expect((await dialled(server.url, { headers: as('user'), path })).isOpen).toBe(true)
    const { ticket } = await ticketOf(server.url, 'user')
    const byTicket = await dialled(server.url, { protocols: [voiceProtocol, ticketPrefix + ticket], path })
    expect([byTicket.isOpen, byTicket.socket.protocol]).toEqual([true, voiceProtocol])
    const stream = await ticketOf(server.url, 'user', `/api/agents/guide/threads/${thread.threadId}/ticket`)
    expect(stream.status).toBe(200)
    expect((await dialled(server.url, { protocols: [voiceProtocol, ticketPrefix + stream.ticket], path })).isOpen).toBe(false)
    // Nor does the ticket of a session open a stream, or the session of another thread.
    expect((await fetch(`${server.url}/api/agents/guide/threads/${thread.threadId}/subscribe?ticket=${ticket}`)).status).toBe(401)
    expect((await dialled(server.url, { protocols: [voiceProtocol, ticketPrefix + ticket], path: path.replace(thread.threadId, 'another') })).isOpen).toBe(false)
  })

  it('[Z5.2] it needs the scopes to send and to read, for the ticket as for the session', async () => {
    const { server } = await calling([], { serve: { auth } })
    for (const who of ['reader', 'sender'] as const) {
      expect(await ticketOf(server.url, who)).toMatchObject({ status: 403, code: 'forbidden' })
      expect((await dialled(server.url, { headers: as(who), path })).isOpen).toBe(false)
    }
    expect(await ticketOf(server.url, 'user')).toMatchObject({ status: 200 })
  })

  it('[Z5.2] a thread of another resource stays closed', async () => {
    const { server, agent } = await calling(['Secret.'], { serve: { auth } })
    await agent.generate('Mine.', { memory: { thread: thread.threadId, resource: thread.resourceId } })
    const { start, closed } = await dialled(server.url, { headers: as('stranger'), path })
    expect(await start()).toMatchObject({ type: 'error', final: true, error: { code: 'thread_forbidden' } })
    await closed
    expect((await dialled(server.url, { headers: as('stranger'), path: `${path}?resourceId=user-1` })).isOpen).toBe(false)
  })

  it('[Z5.3] pages of other origins are refused, whether they have credentials or not; own and allowed ones are not', async () => {
    const { server } = await calling([], { serve: { cors: { origin: ['https://app.example'] } } })
    const opens = async (origin: string) => (await dialled(server.url, { headers: { origin } })).isOpen
    expect([await opens('https://evil.example'), await opens('null'), await opens(`${server.url}0`)]).toEqual([false, false, false])
    expect([await opens('https://app.example'), await opens(server.url)]).toEqual([true, true])
    const form = new FormData()
    form.set('audio', new Blob([soundOf('a') as Uint8Array<ArrayBuffer>], { type: 'audio/pcm;rate=24000' }))
    const sent = (origin: string) => fetch(`${server.url}/api/agents/guide/voice/listen`, { method: 'POST', body: form, headers: { origin } })
    expect([(await sent('https://evil.example')).status, (await sent('https://app.example')).status]).toEqual([403, 200])
  })

  it('[Z5.4] only the principal that opened a session goes on with it', async () => {
    const { server } = await calling([], { serve: { auth } })
    const own = await dialled(server.url, { headers: as('user'), path })
    const { session } = (await own.start()) as { session: string }
    const other = await dialled(server.url, { headers: as('other'), path })
    expect(await other.start({ session })).toMatchObject({ error: { code: 'voice_gone' } })
    own.socket.close()
    await own.closed
    await turns()
    // Nor does it make way for another principal.
    const late = await dialled(server.url, { headers: as('other'), path })
    expect(await late.start()).toMatchObject({ error: { code: 'voice_busy' } })
  })

  it('[Z5.5] a principal has only so many sessions, and so has the server', async () => {
    const { server } = await calling([], { serve: { auth, limits: { voiceSessionsPerPrincipal: 1, voiceSessions: 2 } } })
    const at = (threadId: string) => path.replace(thread.threadId, threadId)
    const first = await dialled(server.url, { headers: as('user'), path: at('a') })
    expect(await first.start()).toMatchObject({ type: 'started' })
    const second = await dialled(server.url, { headers: as('user'), path: at('b') })
    expect(await second.start()).toMatchObject({ error: { code: 'rate_limited', retryable: true } })
    const others = await dialled(server.url, { headers: as('other'), path: at('c') })
    expect(await others.start()).toMatchObject({ type: 'started' })
    const stranger = await dialled(server.url, { headers: as('stranger'), path: at('d') })
    expect(await stranger.start()).toMatchObject({ error: { code: 'rate_limited' } })
    // One that has ended makes room; so does one connection that says nothing, for no other of its principal.
    first.say({ type: 'close' })
    await first.closed
    const again = await dialled(server.url, { headers: as('stranger'), path: at('d') })
    expect(await again.start()).toMatchObject({ type: 'started' })
    await dialled(server.url, { headers: as('user'), path: at('e') })
    expect((await dialled(server.url, { headers: as('user'), path: at('f') })).isOpen).toBe(false)
  })
})

describe('what is asked for each turn', () => {
  const forbidding = (policies: Record<string, string>) => new CedarPolicies({ policies, logger: silentLogger })

  it('[Z5.6] policies are asked to open a session, and again for all words that are sent', async () => {
    const permit = { all: 'permit(principal, action, resource);' }
    const { server } = await calling([], { serve: { auth }, heed: { policies: forbidding({ ...permit, no: 'forbid(principal, action == Policy::Action::"read_thread", resource);' }) } })
    expect((await dialled(server.url, { headers: as('user'), path })).isOpen).toBe(false)
    expect(await ticketOf(server.url, 'user')).toMatchObject({ status: 403 })

    let isDenied = false
    const asked: string[] = []
    const policies = {
      authorize: async (request: { action: string }) => {
        asked.push(request.action)
        return { allowed: !(isDenied && request.action === 'send_signal'), policyIds: [], revision: '1' }
      },
    }
    const second = await calling(['One.', 'Two.'], { serve: { auth }, heed: { policies: policies as never } })
    const session = await new HeedClient({ baseUrl: second.server.url, headers: as('user') }).getAgent('guide').voice.session({ threadId: thread.threadId })
    onTestFinished(() => session.close())
    const player = play(session)
    await session.write(soundOf('First.'))
    await session.write(silence(700))
    await second.until(() => player.of('item-end').length === 1 && session.state === 'listening')
    const before = asked.filter((action) => action === 'send_signal').length
    isDenied = true
    await session.write(soundOf('Second.'))
    await session.write(silence(700))
    await second.until(() => player.of('error').length === 1)
    expect(player.of('error')[0]?.error.code).toBe('forbidden')
    expect(asked.filter((action) => action === 'send_signal').length).toBeGreaterThan(before)
    expect((await second.messages()).map(({ text }) => text)).toEqual(['First.', 'One.'])
  })

  it('[Z5.6] turns count as sends of the principal', async () => {
    const { server, until, messages } = await calling(['One.', 'Two.', 'Three.'], { serve: { auth, limits: { requests: { send: { requests: 3, perMs: 3_600_000 } } } } })
    const session = await new HeedClient({ baseUrl: server.url, headers: as('user') }).getAgent('guide').voice.session({ threadId: thread.threadId })
    onTestFinished(() => session.close())
    const player = play(session)
    // The ticket and the session were two.
    for (const words of ['First.', 'Second.']) {
      await session.write(soundOf(words))
      await session.write(silence(700))
      await until(() => player.of('transcript').length + player.of('error').length === (words === 'First.' ? 1 : 2))
    }
    expect(player.of('error')).toMatchObject([{ error: { code: 'rate_limited' } }])
    expect((await messages())[0]?.text).toBe('First.')
  })

  it('[Z5.7] what a provider says when it fails is for operators', async () => {
    const output = toneSpeech({ onCall: () => { throw new Error('account acct_1234 of https://internal.example is out of money') } })
    const { server, until } = await calling(['Hi.'], { serve: { auth }, output })
    const { start, socket, of } = await dialled(server.url, { headers: as('user'), path })
    await start()
    socket.send(soundOf('Hello.'))
    socket.send(silence(700))
    await until(() => of('error').length === 1)
    expect(JSON.stringify(of('error'))).not.toContain('acct_1234')
    expect(of('error')).toMatchObject([{ error: { code: 'provider_error', details: { errorId: expect.any(String) as string } } }])
  })
})

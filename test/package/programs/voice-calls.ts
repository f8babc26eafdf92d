import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { createOpenAI } from '@ai-sdk/openai'
import { Agent, Heed, InMemoryStore, RequestContext } from 'heed'
import { HeedClient } from 'heed/client'
import { serve } from 'heed/server'
import { providerServer, scriptedModel, spelledSound, spelledText } from 'heed/testing'
import { CompositeVoice } from 'heed/voice'
import { openVoiceCall, voiceCallWorklet } from 'heed/voice-call'

// Every call of a voice, as a program of a user has them, with the models of a provider on a local server.

const provider = await providerServer()
const openai = createOpenAI(provider.openai)
const voice = new CompositeVoice({
  input: openai.transcription('gpt-4o-transcribe'), output: openai.speech('gpt-4o-mini-tts'), speaker: 'alloy', format: { type: 'audio/pcm', rate: 24_000 },
})
const pcm = { mediaType: 'audio/pcm;rate=24000' }

test('speak, listen, speakers and listener, of texts and of streams', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['By train. Now.']), voice })
  assert.equal(spelledText(await buffer(await agent.voice.speak('Hello.', { speaker: 'nova', instructions: 'softly', speed: 1 }))), 'Hello.')
  assert.equal(spelledText(await buffer(await agent.voice.speak((await agent.stream('How?')).textStream))), 'By train.Now.')
  assert.equal(await agent.voice.listen(spelledSound('Where?'), pcm), 'Where?')
  assert.equal(await agent.voice.listen(Readable.from([spelledSound('When?')]), pcm), 'When?')
  assert.deepEqual([await agent.voice.getSpeakers(), await agent.voice.getListener()], [[], { enabled: true }])
  const chosen = new Agent({ id: 'chosen', model: scriptedModel([]), voice: ({ requestContext }) => (requestContext.get('tenant') === 'acme' ? voice : new CompositeVoice({ output: openai.speech('tts-1') })) })
  const ofTenant = chosen.getVoice({ requestContext: new RequestContext({ tenant: 'acme' }) })
  assert.deepEqual(await ofTenant.getListener(), { enabled: true })
})

test('the same over HTTP, and a conversation over a WebSocket', async () => {
  const agent = new Agent({ id: 'guide', model: scriptedModel(['By train. Now.']), voice })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
  const server = await serve(heed, { port: 0, handleSignals: false })
  const remote = new HeedClient({ baseUrl: server.url }).getAgent('guide').voice
  const spoken = await remote.speak('Hello.', { speaker: 'nova' })
  assert.deepEqual([spoken.headers.get('content-type'), spelledText(new Uint8Array(await spoken.arrayBuffer()))], ['audio/pcm;rate=24000', 'Hello.'])
  assert.deepEqual(await remote.listen(spelledSound('Where?'), pcm), { text: 'Where?' })
  assert.deepEqual([await remote.getSpeakers(), await remote.getListener()], [[], { enabled: true }])
  const session = await remote.session({ threadId: 'call', resourceId: 'user-1', turn: { detect: 'caller' } })
  session.beginTurn()
  await session.write(spelledSound('How?'))
  session.endTurn()
  const said: string[] = []
  const sound: Uint8Array[] = []
  for await (const event of session.events) {
    if (event.type === 'transcript' || event.type === 'sentence') said.push(event.text)
    if (event.type === 'audio') sound.push(event.audio)
    if (event.type === 'item-end') session.played({ itemId: event.itemId, ms: event.ms })
    if (event.type === 'item-end' && said.length === 3) break
  }
  assert.deepEqual([said, spelledText(Buffer.concat(sound))], [['How?', 'By train.', 'Now.'], 'By train.Now.'])
  session.interrupt()
  await session.close()
  await server.close()
})

test('a page finds its call; Node has no microphone', async () => {
  assert.ok(voiceCallWorklet.includes('registerProcessor'))
  await assert.rejects(openVoiceCall({ session: () => Promise.reject(new Error('none')) }, { threadId: 'a' }), { code: 'audio_unavailable' })
  await provider.close()
})

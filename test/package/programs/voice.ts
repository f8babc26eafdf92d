import assert from 'node:assert/strict'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { Agent, Heed, InMemoryStore } from 'heed'
import { scriptedModel } from 'heed/testing'
import { CompositeVoice, type SpeechModel, type TranscriptionModel } from 'heed/voice'

const output: SpeechModel = {
  specificationVersion: 'v4', provider: 'example', modelId: 'mouth',
  doGenerate: async ({ text }) => ({ audio: new Uint8Array(text.length * 480), warnings: [], response: { timestamp: new Date(), modelId: 'mouth' } }),
}
const input: TranscriptionModel = {
  specificationVersion: 'v4', provider: 'example', modelId: 'ears',
  doGenerate: async () => ({
    text: 'How?', segments: [], language: 'en', durationInSeconds: 1, warnings: [], response: { timestamp: new Date(), modelId: 'ears' },
  }),
}

test('an agent speaks, listens, and talks on a thread', async () => {
  const agent = new Agent({
    id: 'guide', model: scriptedModel(['By train. Now.']), voice: new CompositeVoice({ input, output, format: { type: 'audio/pcm', rate: 24_000 } }),
  })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
  const audio = await agent.voice.speak('Hello.')
  assert.equal(audio.mediaType, 'audio/pcm;rate=24000')
  assert.equal((await buffer(audio)).length, 6 * 480)
  assert.equal(await agent.voice.listen(new Uint8Array(480), { mediaType: 'audio/pcm;rate=24000' }), 'How?')

  const session = await agent.voice.session({ threadId: 'call', resourceId: 'user-1', turn: { detect: 'caller' } })
  session.beginTurn()
  await session.write(new Uint8Array(4_800))
  session.endTurn()
  const sentences: string[] = []
  for await (const event of session.events) {
    if (event.type === 'sentence') sentences.push(event.text)
    if (event.type === 'state' && event.state === 'listening') break
  }
  assert.deepEqual(sentences, ['By train.', 'Now.'])
  await session.close()
  await heed.close()
})

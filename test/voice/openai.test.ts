import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createOpenAI } from '@ai-sdk/openai'
import { expect, it, onTestFinished } from 'vitest'
import { providerServer } from '../../src/testing/index.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { soundOf } from './voices.ts'

it('[Z1.6] the models of a provider of the AI SDK speak and listen over HTTP, and the sound comes through sample by sample', async () => {
  const server = await providerServer()
  onTestFinished(() => server.close())
  const openai = createOpenAI(server.openai)
  const voice = new CompositeVoice({ input: openai.transcription('gpt-4o-transcribe'), output: openai.speech('gpt-4o-mini-tts'), speaker: 'alloy' })
  const pcm = await buffer(await voice.speak('One. Two.', { format: { type: 'audio/pcm', rate: 24_000 }, instructions: 'softly' }))
  expect(pcm.equals(soundOf('One. Two.'))).toBe(true)
  const audio = await voice.speak('Three.', { format: { type: 'audio/wav' } })
  expect(audio.mediaType).toBe('audio/wav')
  expect(await voice.listen(audio)).toBe('Three.')
  expect(await voice.listen(pcm, { mediaType: 'audio/pcm;rate=24000' })).toBe('One. Two.')
  expect(server.requests.map(({ body }) => body)).toMatchObject([
    { model: 'gpt-4o-mini-tts', input: 'One. Two.', voice: 'alloy', response_format: 'pcm', instructions: 'softly' }, { input: 'Three.', response_format: 'wav' },
    { model: 'gpt-4o-transcribe', file: { type: 'audio/wav' } }, { model: 'gpt-4o-transcribe', file: { type: 'audio/wav' } },
  ])
})

it('[Z1.3] a model of a provider that streams only with others is called once for a stream of samples', async () => {
  const server = await providerServer()
  onTestFinished(() => server.close())
  const voice = new CompositeVoice({ input: createOpenAI(server.openai).transcription('gpt-4o-transcribe') })
  const pcm = soundOf('How do I get there?')
  for (let turn = 0; turn < 2; turn++) {
    expect(await voice.listen(Readable.from([pcm.subarray(0, 1_000), pcm.subarray(1_000)]), { mediaType: 'audio/pcm;rate=24000' })).toBe('How do I get there?')
  }
  expect(server.requests.length).toBe(2)
})

it('[Z1.7] what the provider refuses is an error with its status', async () => {
  const server = await providerServer({ speech: { listen: () => { throw new Error('too quiet') } } })
  onTestFinished(() => server.close())
  const openai = createOpenAI(server.openai)
  const voice = new CompositeVoice({ input: openai.transcription('whisper-1'), output: openai.speech('tts-1') })
  await expect(voice.speak('Hi.', { format: { type: 'audio/mpeg' } })).rejects.toMatchObject({ code: 'provider_error', details: { statusCode: 400 } })
  await expect(voice.listen(soundOf('Hi.'), { mediaType: 'audio/pcm;rate=24000' })).rejects.toMatchObject({ code: 'provider_error', message: expect.stringContaining('too quiet') as string })
})

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { createOpenAI } from '@ai-sdk/openai'
import { expect, it, onTestFinished } from 'vitest'
import { CompositeVoice } from '../../src/voice/index.ts'
import { readWav, toWav } from '../../src/voice/sound/wav.ts'
import { soundOf, textOf } from './voices.ts'

/** A server that speaks the protocol of OpenAI for speech and transcription. */
async function openaiServer() {
  const asked: unknown[] = []
  const server = createServer((request, response) => {
    void buffer(request).then(async (bytes) => {
      if (request.url === '/v1/audio/speech') {
        const body = JSON.parse(bytes.toString()) as { input: string; response_format: string }
        asked.push(body)
        response.end(body.response_format === 'wav' ? toWav({ pcm: soundOf(body.input), rate: 24_000 }) : soundOf(body.input))
        return
      }
      const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': request.headers['content-type'] ?? '' } }).formData()
      const file = form.get('file') as File
      asked.push({ model: form.get('model'), type: file.type })
      const text = textOf(readWav(new Uint8Array(await file.arrayBuffer()))?.pcm ?? new Uint8Array())
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ text }))
    })
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { asked, openai: createOpenAI({ baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, apiKey: 'none' }) }
}

it('[Z1.6] the models of a provider of the AI SDK speak and listen over HTTP, and the sound comes through sample by sample', async () => {
  const { openai, asked } = await openaiServer()
  const voice = new CompositeVoice({ input: openai.transcription('gpt-4o-transcribe'), output: openai.speech('gpt-4o-mini-tts'), speaker: 'alloy' })
  const pcm = await buffer(await voice.speak('One. Two.', { format: { type: 'audio/pcm', rate: 24_000 }, instructions: 'softly' }))
  expect(pcm.equals(soundOf('One. Two.'))).toBe(true)
  const audio = await voice.speak('Three.', { format: { type: 'audio/wav' } })
  expect(audio.mediaType).toBe('audio/wav')
  expect(await voice.listen(audio)).toBe('Three.')
  expect(await voice.listen(pcm, { mediaType: 'audio/pcm;rate=24000' })).toBe('One. Two.')
  expect(asked).toMatchObject([
    { model: 'gpt-4o-mini-tts', input: 'One. Two.', voice: 'alloy', response_format: 'pcm', instructions: 'softly' }, { input: 'Three.', response_format: 'wav' },
    { model: 'gpt-4o-transcribe', type: 'audio/wav' }, { model: 'gpt-4o-transcribe', type: 'audio/wav' },
  ])
})

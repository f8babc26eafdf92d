import { Readable } from 'node:stream'
import { text as textOfStream } from 'node:stream/consumers'
import type { Experimental_StreamingSpeechModelV4, Experimental_TranscriptionModelV4StreamPart, SpeechModelV4, TranscriptionModelV4 } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { scriptedModel } from '../testing/index.ts'
import { soundOf, textOf, toneSpeech, toneTranscription } from '../../test/voice/voices.ts'
import { CompositeVoice } from './index.ts'
import { readWav, toWav } from './sound/wav.ts'

const format = { type: 'audio/pcm', rate: 24_000 }

async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of stream) pieces.push(piece)
  return Buffer.concat(pieces)
}

describe('speak', () => {
  it('[Z1.1] speaks a text in one call, with the options of the voice and those of the call', async () => {
    const output = toneSpeech()
    const voice = new CompositeVoice({ output, speaker: 'ada', language: 'en', format })
    const headers = { 'x-request': '1' }
    const audio = await voice.speak('One. Two.', { speaker: 'bob', speed: 1.5, instructions: 'softly', providerOptions: { tone: { a: 1 } }, headers })
    expect(audio.mediaType).toBe('audio/pcm;rate=24000')
    expect(textOf(await bytesOf(audio))).toBe('One. Two.')
    expect(output.calls).toEqual([{
      text: 'One. Two.', voice: 'bob', language: 'en', outputFormat: 'pcm', speed: 1.5, instructions: 'softly', providerOptions: { tone: { a: 1 } }, headers,
      abortSignal: expect.any(AbortSignal) as AbortSignal,
    }])
  })

  it('[Z1.2] speaks a stream sentence by sentence: the first sound is there before the text has ended', async () => {
    const output = toneSpeech()
    const voice = new CompositeVoice({ output, format })
    const { promise, resolve } = Promise.withResolvers<void>()
    const audio = await voice.speak((async function* () {
      yield 'First sentence. Sec'
      await promise
      yield new TextEncoder().encode('ond one.')
    })())
    expect(output.calls.map(({ text }) => text)).toEqual(['First sentence.'])
    resolve()
    expect(textOf(await bytesOf(audio))).toBe('First sentence.Second one.')
  })

  it('[Z1.2] joins WAV files of sentences under one header, and refuses types that cannot be joined', async () => {
    const wav = { ...toneSpeech(), doGenerate: async ({ text }: { text: string }) => ({ audio: toWav({ pcm: soundOf(text), rate: 24_000 }), warnings: [], response: { timestamp: new Date(), modelId: 'm' } }) }
    const stream = () => Readable.from(['One. ', 'Two. '])
    const audio = await new CompositeVoice({ output: wav }).speak(stream())
    expect(audio.mediaType).toBe('audio/wav')
    expect(textOf(readWav(await bytesOf(audio))?.pcm ?? new Uint8Array())).toBe('One.Two.')
    const ogg = { ...wav, doGenerate: async () => ({ audio: Buffer.from('OggS....').toString('base64'), warnings: [], response: { timestamp: new Date(), modelId: 'm' } }) }
    await expect(bytesOf(await new CompositeVoice({ output: ogg }).speak(stream()))).rejects.toMatchObject({ code: 'invalid_audio' })
  })

  it('[Z1.3] uses a model that streams as it is', async () => {
    const texts: string[] = []
    const output: Experimental_StreamingSpeechModelV4 = {
      ...toneSpeech(),
      async doStream({ text }) {
        const read = async function* () {
          for await (const part of text) {
            texts.push(part.text)
            yield { type: 'audio' as const, audio: soundOf(part.text), audioFormat: format }
          }
        }
        const parts = read()
        return { stream: new ReadableStream({ async pull(to) {
          const { done, value } = await parts.next()
          if (done) to.close()
          else to.enqueue(value)
        } }) }
      },
    }
    const audio = await new CompositeVoice({ output }).speak(Readable.from(['On', 'e. T', 'wo']))
    expect(textOf(await bytesOf(audio))).toBe('One. Two')
    expect(texts).toEqual(['On', 'e. T', 'wo'])
  })

  it('[Z1.3] a model that has the call to stream, and can not, is called for each sentence', async () => {
    const plain = toneSpeech()
    const refusal = Object.assign(new Error("'streaming' functionality not supported."), { name: 'AI_UnsupportedFunctionalityError' })
    let asked = 0
    const output = { ...plain, doStream: async () => {
      asked++
      throw refusal
    } } as unknown as SpeechModelV4
    const voice = new CompositeVoice({ output, format })
    expect(textOf(await bytesOf(await voice.speak(Readable.from(['One. ', 'Two.']))))).toBe('One.Two.')
    expect(textOf(await bytesOf(await voice.speak('Three.')))).toBe('Three.')
    expect([asked, plain.calls.map(({ text }) => text)]).toEqual([1, ['One.', 'Two.', 'Three.']])
  })

  it('[Z1.4] a stream that is destroyed ends the call of the model', async () => {
    const { promise, resolve } = Promise.withResolvers<AbortSignal>()
    const output = toneSpeech({ onCall: ({ text, abortSignal }) => (text === 'Two.' ? new Promise<void>((_resolve, reject) => {
      if (abortSignal) resolve(abortSignal)
      abortSignal?.addEventListener('abort', () => reject(new Error('aborted')))
    }) : undefined) })
    const audio = await new CompositeVoice({ output, format }).speak(Readable.from(['One. ', 'Two. ']))
    const read = (async () => {
      for await (const bytes of audio) expect(bytes.length).toBeGreaterThan(0)
    })().catch((error: unknown) => error)
    const signal = await promise
    audio.destroy()
    await expect.poll(() => signal.aborted).toBe(true)
    await read
    const stopped = AbortSignal.abort(new Error('not now'))
    await expect(new CompositeVoice({ output, format }).speak('Three.', { abortSignal: stopped })).rejects.toThrow('not now')
  })
})

describe('listen', () => {
  it('[Z1.5] reads bytes and streams, by the type that the bytes have or that the caller names', async () => {
    const input = toneTranscription()
    const voice = new CompositeVoice({ input })
    const wav = toWav({ pcm: soundOf('Hello.'), rate: 24_000 })
    expect(await voice.listen(wav, { providerOptions: { tone: { b: 1 } }, headers: { 'x-a': '1' } })).toBe('Hello.')
    expect(await voice.listen(Readable.from([wav.subarray(0, 50), wav.subarray(50)]))).toBe('Hello.')
    expect(await voice.listen(soundOf('Raw.'), { mediaType: 'audio/pcm;rate=24000' })).toBe('Raw.')
    expect(input.calls.map(({ mediaType }) => mediaType)).toEqual(['audio/wav', 'audio/wav', 'audio/wav'])
    expect(input.calls[0]).toMatchObject({ providerOptions: { tone: { b: 1 } }, headers: { 'x-a': '1' } })
    await expect(voice.listen(soundOf('Raw.'))).rejects.toMatchObject({ code: 'invalid_audio' })
    await expect(voice.listen(soundOf('Raw.'), { mediaType: 'audio/pcm' })).rejects.toMatchObject({ code: 'invalid_audio' })
  })

  it('[Z1.5] rejects more bytes than maxBytes before a model is called', async () => {
    const input = toneTranscription()
    const voice = new CompositeVoice({ input, maxBytes: 100 })
    await expect(voice.listen(new Uint8Array(101))).rejects.toMatchObject({ code: 'too_large' })
    await expect(voice.listen(Readable.from([new Uint8Array(60), new Uint8Array(60)]))).rejects.toMatchObject({ code: 'too_large' })
    expect(input.calls).toEqual([])
  })

  it('[Z1.3] reports what was understood so far where the model streams', async () => {
    const parts: Experimental_TranscriptionModelV4StreamPart[] = [
      { type: 'transcript-partial', text: 'hell' }, { type: 'transcript-final', text: 'Hello' }, { type: 'transcript-delta', delta: 'wor' },
      { type: 'finish', text: 'Hello world.', segments: [] },
    ]
    let heard = ''
    const input: TranscriptionModelV4 = {
      ...toneTranscription(),
      async doStream({ audio }) {
        const pieces: Uint8Array[] = []
        for await (const piece of audio) pieces.push(piece as Uint8Array)
        heard = textOf(Buffer.concat(pieces))
        return { stream: new ReadableStream({ start: (to) => {
          for (const part of parts) to.enqueue(part)
          to.close()
        } }) }
      },
    }
    const partial: string[] = []
    const voice = new CompositeVoice({ input })
    expect(await voice.listen(Readable.from([soundOf('Hi')]), { mediaType: 'audio/pcm;rate=24000', onPartial: (text) => partial.push(text) })).toBe('Hello world.')
    expect(partial).toEqual(['hell', 'Hello', 'Hello wor', 'Hello world.'])
    expect(heard).toBe('Hi')
  })
})

it('[Z1.6] takes models of the three versions and other voices, and rejects everything else by name', async () => {
  for (const version of ['v2', 'v3', 'v4'] as const) {
    const [output, input] = [{ ...toneSpeech(), specificationVersion: version }, { ...toneTranscription(), specificationVersion: version }]
    const voice = new CompositeVoice({ input: input as TranscriptionModelV4, output: output as ReturnType<typeof toneSpeech>, format })
    const audio = await bytesOf(await voice.speak('Hi.'))
    expect(await voice.listen(audio, { mediaType: 'audio/pcm;rate=24000' })).toBe('Hi.')
    const outer = new CompositeVoice({ input: voice, output: voice })
    expect(await textOfStream(await outer.speak('Hi.'))).toHaveLength((await textOfStream(await voice.speak('Hi.'))).length)
    expect(await outer.listen(audio, { mediaType: 'audio/pcm;rate=24000' })).toBe('Hi.')
    expect([await outer.getSpeakers(), await outer.getListener()]).toEqual([[], { enabled: true }])
  }
  const bad: Array<[object, string]> = [
    [{}, 'input'], [{ input: scriptedModel([]) }, 'input'], [{ output: { specificationVersion: 'v9', doGenerate() {} } }, 'output'],
    [{ output: toneSpeech(), speaker: '' }, 'speaker'], [{ output: toneSpeech(), maxBytes: 0 }, 'maxBytes'],
    [{ output: toneSpeech(), format: { type: 'mp3' } }, 'format.type'], [{ output: toneSpeech(), format: { ...format, rate: 0 } }, 'format.rate'],
  ]
  for (const [options, field] of bad) {
    expect(() => new CompositeVoice(options)).toThrow(expect.objectContaining({ code: 'invalid_argument', details: { field } }) as Error)
  }
  expect(() => new CompositeVoice({ output: toneSpeech(), volume: 1 } as never)).toThrow(expect.objectContaining({ code: 'unsupported_option' }) as Error)
})

it('[Z1.7] a part that is missing, a model that fails and a text with nothing to say are errors by name', async () => {
  await expect(new CompositeVoice({ input: toneTranscription() }).speak('Hi.')).rejects.toMatchObject({ code: 'voice_missing', details: { field: 'output' } })
  await expect(new CompositeVoice({ output: toneSpeech() }).listen(new Uint8Array(9))).rejects.toMatchObject({ code: 'voice_missing', details: { field: 'input' } })
  const failing = toneSpeech({ onCall: () => { throw Object.assign(new Error('overloaded'), { statusCode: 503, isRetryable: true }) } })
  await expect(new CompositeVoice({ output: failing }).speak('Hi.')).rejects.toMatchObject({ code: 'provider_error', retryable: true, details: { statusCode: 503 } })
  const voice = new CompositeVoice({ output: toneSpeech() })
  await expect(voice.speak('')).rejects.toMatchObject({ code: 'invalid_argument' })
  await expect(voice.speak(Readable.from(['```\ncode\n```\n']))).rejects.toMatchObject({ code: 'invalid_argument' })
})

import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOpenAI } from '@ai-sdk/openai'
import { chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { findProgram, whySkipped } from '../../scripts/programs.ts'
import { voiceCallWorklet } from '../../src/client/call/index.ts'
import { Resampler, toBytes } from '../../src/client/call/resampler.ts'
import { Agent } from '../../src/index.ts'
import { providerServer } from '../../src/testing/index.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { site } from '../browser/site.ts'
import { served } from '../http/serving.ts'
import { asMicrophoneFile, loudness, missing as noSound, rate, spoken, typicalDifference, why as whyNoSound } from './real-sound.ts'

const found = await findProgram('chromium')
const missing = noSound || 'missing' in found
const why = whyNoSound || whySkipped(found)

const silence = (ms: number) => new Uint8Array(2 * Math.round((rate * ms) / 1_000))
const answer = 'Take the train from the main station. It leaves every hour, and the way takes forty minutes. Then you walk up to the castle, or you take the bus.'

interface Event {
  at: number
  event: { type: string; [field: string]: unknown }
}

describe.skipIf(missing)(`a call of a page in Chromium, with espeak-ng at its microphone${why}`, { timeout: 180_000 }, () => {
  let folder = ''
  let pages: Awaited<ReturnType<typeof site>>
  let question: Uint8Array
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'heed-page-call-'))
    pages = await site(['voice-call'])
    question = await spoken('How do I get to Sintra?')
  }, 120_000)
  afterAll(async () => {
    await pages.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** A page whose microphone hears this, and a server whose provider speaks with espeak-ng. */
  async function calling(name: string, heardAtMicrophone: Uint8Array[], { permits = true, query = '' }: { permits?: boolean; query?: string } = {}) {
    const heard: Uint8Array[] = []
    const words = ['How do I get to Sintra?', 'Wait, please stop.']
    const listen = (pcm: Uint8Array) => words[heard.push(pcm) - 1] ?? ''
    const provider = await providerServer({ script: [answer, 'Fine.'], speech: { speak: spoken, listen } })
    onTestFinished(() => provider.close())
    const openai = createOpenAI(provider.openai)
    const voice = new CompositeVoice({ input: openai.transcription('gpt-4o-transcribe'), output: openai.speech('gpt-4o-mini-tts'), speaker: 'alloy' })
    const agent = new Agent({ id: 'guide', model: openai('gpt-5'), voice })
    const { server } = await served({ guide: agent }, { cors: { origin: [pages.url] } })
    const file = join(folder, `${name}.wav`)
    await asMicrophoneFile(Buffer.concat(heardAtMicrophone), file)
    const microphone = ['--use-fake-device-for-media-stream', `--use-file-for-fake-audio-capture=${file}%noloop`, ...(permits ? ['--use-fake-ui-for-media-stream'] : [])]
    const browser = await chromium.launch({ executablePath: 'path' in found ? found.path : '', args: ['--no-sandbox', ...microphone] })
    onTestFinished(() => browser.close())
    const page = await browser.newPage()
    page.setDefaultTimeout(180_000)
    const open = async () => {
      await page.goto(`${pages.url}/voice-call?server=${encodeURIComponent(server.url)}${query}`)
      await page.click('#call')
      await expect.poll(() => page.title(), { timeout: 60_000 }).not.toBe('Heed')
    }
    const messages = async () => (await (await agent.getMemory()).recall({ threadId: 'call', resourceId: 'user-1', perPage: false })).messages.map(({ role, content }) => ({
      role: role === 'signal' ? 'user' : role, text: content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''), metadata: content.metadata,
    }))
    return { heard, page, open, messages }
  }

  const read = <T>(page: Page, name: string): Promise<T> => page.evaluate((field) => (globalThis as unknown as { recorded: Record<string, unknown> }).recorded[field], name) as Promise<T>
  const close = (page: Page) => page.evaluate(() => (globalThis as unknown as { recorded: { call: { close(): Promise<void>; ended: Promise<void> } } }).recorded.call.close())
  const events = async (page: Page, type: string) => (await read<Event[]>(page, 'events')).filter(({ event }) => event.type === type)

  it('[Z7.1] [Z7.2] [Z7.3] what the microphone hears reaches the model, the answer is played, and speech over it stops it within 150 ms; history has what the user heard', async () => {
    const interruption = await spoken('Wait, please stop.')
    const { heard, page, open, messages } = await calling('interrupts', [silence(800), question, silence(6_000), interruption, silence(6_000)])
    await open()
    expect(await read(page, 'error')).toBeUndefined()
    await expect.poll(async () => (await messages()).length, { timeout: 90_000, interval: 250 }).toBe(4)
    await expect.poll(async () => (await events(page, 'item-end')).some(({ event }) => Number(event.ms) > 0), { timeout: 60_000 }).toBe(true)
    const [asked, cut, again, last] = await messages()
    expect([asked, again, last]).toMatchObject([{ role: 'user', text: 'How do I get to Sintra?' }, { role: 'user', text: 'Wait, please stop.' }, { text: 'Fine.' }])
    const text = cut?.text ?? ''
    expect([answer.startsWith(text), text.length > 0, text.length < answer.length]).toEqual([true, true, true])

    // The model got what was spoken. A second change of the rate is in between, in Chromium.
    const loud = question.subarray(Math.round(rate * 0.2) * 2, question.length - (question.length % 2) - rate)
    expect(await typicalDifference(loud, heard[0] ?? new Uint8Array())).toBeLessThan(0.25)

    const blocks = await read<Array<{ at: number; samples: number[] }>>(page, 'blocks')
    const contextRate = await read<number>(page, 'rate')
    const [clear] = await events(page, 'clear')
    const until = clear?.at ?? 0
    const isLoud = (samples: number[]) => samples.some((sample) => Math.abs(sample) > 0.001)
    const sounded = blocks.filter(({ at, samples }) => at <= until + 1 && isLoud(samples))
    const begin = sounded[0]?.at ?? 0
    const end = sounded.at(-1)?.at ?? 0
    // After the session said to stop, the device got nothing more for long.
    expect(end - until).toBeLessThan(0.15)
    expect(end - begin).toBeGreaterThan(1)
    // What is stored as heard is what was played, without the pauses between sentences.
    const { voice } = (cut?.metadata ?? {}) as { voice?: { heardMs: number } }
    const heardMs = voice?.heardMs ?? NaN
    const playedMs = (end - begin) * 1_000
    expect([heardMs > playedMs / 2, heardMs < playedMs + 60]).toEqual([true, true])

    // The first sentence sounds as the provider spoke it.
    const [sentence] = await events(page, 'sentence')
    const wanted = await spoken(String(sentence?.event.text))
    const played = new Resampler(contextRate, rate).push(Float32Array.from(blocks.filter(({ at }) => at > begin - 0.1 && at < begin + 3).flatMap(({ samples }) => samples)))
    const part = wanted.subarray(0, Math.min(wanted.length, 2 * rate))
    // A place between two samples is left of it; of another sound, all is left.
    expect(await typicalDifference(part, toBytes(played))).toBeLessThan(0.25)
    await close(page)
    expect(await page.evaluate(() => (globalThis as unknown as { recorded: { call: { output: AudioNode } } }).recorded.call.output.context.state)).toBe('closed')
  })

  it('[Z7.4] a call that is muted sends silence, and the worklet may come from an address of the page', async () => {
    let asked = 0
    const files = createServer((_, response) => {
      asked++
      response.writeHead(200, { 'content-type': 'text/javascript', 'access-control-allow-origin': '*' }).end(voiceCallWorklet)
    })
    await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void files.close())
    const worklet = `http://127.0.0.1:${(files.address() as AddressInfo).port}/worklet.js`
    const { heard, page, open } = await calling('muted', [silence(500), question, silence(1_000)], { query: `&muted=1&worklet=${encodeURIComponent(worklet)}` })
    await open()
    expect(await read(page, 'error')).toBeUndefined()
    await new Promise((resolve) => void setTimeout(resolve, 4_000))
    expect([asked, heard.length, (await events(page, 'transcript')).length]).toEqual([1, 0, 0])
    expect(await loudness(question)).toBeGreaterThan(0.02)
    await close(page)
  })

  it('[Z7.5] a microphone that is not permitted is an error with a code, and no session is opened', async () => {
    const { page, open } = await calling('denied', [silence(500)], { permits: false })
    const sockets: string[] = []
    page.on('websocket', (socket) => void sockets.push(socket.url()))
    await open()
    expect(await read(page, 'error')).toMatchObject({ code: 'audio_unavailable', message: expect.stringContaining('The microphone could not be opened: ') as string })
    expect(sockets).toEqual([])
  })
})

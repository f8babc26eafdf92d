import { createOpenAI } from '@ai-sdk/openai'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Agent } from '../../src/index.ts'
import { providerServer, type Script } from '../../src/testing/index.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { served } from '../http/serving.ts'
import { play } from './calling.ts'
import { difference, loudness, missing, rate, spoken, why } from './real-sound.ts'

const silence = (ms: number) => new Uint8Array(2 * Math.round((rate * ms) / 1_000))

/** An agent whose three models are those of a provider, on a server that speaks with espeak-ng; and a session over a WebSocket. */
async function onProvider(script: Script<never>, words: string[]) {
  const heard: Uint8Array[] = []
  const listen = (pcm: Uint8Array) => words[heard.push(pcm) - 1] ?? ''
  const provider = await providerServer({ script: script as never, speech: { speak: spoken, listen } })
  onTestFinished(() => provider.close())
  const openai = createOpenAI(provider.openai)
  const voice = new CompositeVoice({ input: openai.transcription('gpt-4o-transcribe'), output: openai.speech('gpt-4o-mini-tts'), speaker: 'alloy' })
  const agent = new Agent({ id: 'guide', model: openai('gpt-5'), voice })
  const { client } = await served({ guide: agent })
  const thread = { threadId: 'call', resourceId: 'user-1' }
  const open = async (options: object = {}) => {
    const session = await client.getAgent('guide').voice.session({ ...thread, ...options })
    onTestFinished(() => session.close())
    return { session, player: play(session) }
  }
  const messages = async () => (await (await agent.getMemory()).recall({ ...thread, perPage: false })).messages.map(({ role, content }) => ({
    role: role === 'signal' ? 'user' : role, text: content.parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''),
  }))
  return { heard, open, messages, provider }
}

describe.skipIf(missing)(`speech of espeak-ng through the protocol of a provider, compared by SoX${why}`, { timeout: 120_000 }, () => {
  it('[Z1.6] [Z4.5] the model gets what was spoken, and the player what the model says, sample by sample', async () => {
    const { heard, open, messages } = await onProvider(['Take the train. It leaves at nine.'], ['How do I get to Sintra?'])
    const { session, player } = await open()
    const question = await spoken('How do I get to Sintra?')
    for (let at = 0; at < question.length; at += 960) await session.write(question.subarray(at, at + 960))
    await session.write(silence(800))
    await expect.poll(() => player.of('item-end').length, { timeout: 60_000 }).toBe(2)
    expect(await messages()).toEqual([{ role: 'user', text: 'How do I get to Sintra?' }, { role: 'assistant', text: 'Take the train. It leaves at nine.' }])
    // The silence before the first word may be shorter: a turn begins with the speech.
    const [given = new Uint8Array()] = heard
    const lead = Math.max(0, question.findIndex((byte, index) => index % 2 === 1 && byte !== 0 && byte !== 255) - 1)
    const said = question.subarray(lead - (lead % 2), question.length - (question.length % 960))
    expect(await loudness(said)).toBeGreaterThan(0.02)
    expect(await difference(said, given)).toMatchObject({ left: 0, volume: 1 })
    for (const { itemId, text } of player.of('sentence')) {
      const sound = Buffer.concat(player.of('audio').filter((event) => event.itemId === itemId).map(({ audio }) => audio))
      const wanted = await spoken(text)
      expect([sound.length, await difference(wanted, sound)]).toMatchObject([wanted.length, { left: 0, at: 0 }])
    }
  })

  it('[Z4.6] on the clock of the machine, the sound stops within 150 ms after the client says that its user speaks', async () => {
    const answer = Array.from({ length: 12 }, (_, index) => `This is sentence number ${index}.`).join(' ')
    const { open, messages } = await onProvider(Array.from({ length: 5 }, () => answer), ['Tell me.', 'Again.', 'Again.', 'Again.', 'Again.'])
    const { session, player } = await open({ turn: { detect: 'caller' } })
    const question = await spoken('Tell me.')
    const times: number[] = []
    for (let turn = 0; turn < 5; turn++) {
      const [clears, sentences] = [player.of('clear').length, player.of('sentence').length]
      const began = performance.now()
      session.beginTurn()
      if (turn > 0) {
        while (player.of('clear').length === clears) await new Promise((resolve) => void setTimeout(resolve, 1))
        times.push(performance.now() - began)
      }
      const bytes = player.bytes()
      await session.write(question)
      // Nothing of the answer follows in the turn of the user.
      expect(player.bytes()).toBe(bytes)
      session.endTurn()
      await expect.poll(() => player.of('sentence').length, { timeout: 60_000, interval: 10 }).toBeGreaterThan(sentences + 1)
    }
    // A busy machine delays some of them.
    expect(Math.min(...times)).toBeLessThan(150)
    const cut = (await messages()).filter(({ role }) => role === 'assistant').slice(0, -1)
    expect(cut.length).toBe(4)
    for (const { text } of cut) expect([answer.startsWith(text), text.length < answer.length]).toEqual([true, true])
  })
})

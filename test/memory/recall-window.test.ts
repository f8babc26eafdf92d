import type { LanguageModelV4Prompt } from '@ai-sdk/provider'
import { describe, expect, it } from 'vitest'
import { Agent, Memory, type MemoryConfig } from '../../src/index.ts'
import { TokenLimiter, type TokenLimiterOptions } from '../../src/processors/index.ts'
import { estimateTokens } from '../../src/prompt/tokens.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { openHeed, placeKinds, type Place } from '../thread/places.ts'
import { texts } from '../thread/said.ts'

const ask = (thread: string) => ({ memory: { thread, resource: 'user-7' } })
const isBlock = (text: string) => text.startsWith('user: <recalled-messages>')
const blocks = (prompt: LanguageModelV4Prompt | undefined) => texts(prompt ?? []).filter(isBlock).map((text) => text.slice(6))
const tokensOf = (list: readonly string[]) => list.reduce((sum, text) => sum + estimateTokens(text), 0)

const things = ['gazelle', 'walrus', 'falcon', 'badger', 'heron', 'otter', 'lynx', 'marten', 'osprey', 'weasel', 'ibis', 'stoat']
const verbs = ['sleeps', 'eats', 'plays', 'hides', 'swims', 'sings']
/** Six long notes on each animal. */
const facts = things.flatMap((thing) => verbs.map((verb) => `The ${thing} ${verb} after noon. ${`Nobody knows why it ${verb}, and the keepers have asked. `.repeat(16)}`))

async function zoo(place: Place, config: MemoryConfig = {}, limiter?: TokenLimiterOptions) {
  const model = scriptedModel(() => 'ok')
  const agent = new Agent({
    id: 'keeper', instructions: 'Be brief.', model, memory: new Memory(config), ...(limiter && { inputProcessors: [new TokenLimiter(limiter)] }),
  })
  openHeed({ agent }, place.store())
  const memory = await agent.getMemory()
  await memory.createThread({ threadId: 'facts', resourceId: 'user-7' })
  await memory.saveMessages({ threadId: 'facts', messages: facts.map((content, at) => ({ id: `f-${at}`, role: 'user' as const, content })) })
  const prompts: LanguageModelV4Prompt[] = []
  const asked = async (thing: string) => {
    const result = await agent.generate(`What about the ${thing}?`, ask('q'))
    const prompt = model.calls.at(-1)?.prompt
    if (prompt) prompts.push(prompt)
    return result
  }
  return { agent, model, memory, asked, prompts }
}

describe.each(placeKinds())('the recall blocks of a window, $name', ({ make }) => {
  it('[K2.14] have at most 1,500 tokens together, the newest question has its answer, and the prefix changes at cuts of the window alone', async () => {
    const { asked, prompts } = await zoo(make(), { lastMessages: 4 })
    const cuts: number[] = []
    for (const [at, thing] of things.entries()) {
      await asked(thing)
      const prompt = prompts.at(-1)
      expect(tokensOf(blocks(prompt)), `question ${at}`).toBeLessThanOrEqual(1_500)
      expect(blocks(prompt).at(-1), `question ${at}`).toContain(`The ${thing} `)
      const before = texts(prompts.at(-2) ?? [])
      if (JSON.stringify(texts(prompt ?? []).slice(0, before.length)) !== JSON.stringify(before)) cuts.push(at)
    }
    // Messages 1 to 8 fit; from message 9 on, the window of 4 to 8 is cut after every four messages.
    expect(cuts).toEqual([4, 6, 8, 10])
    expect(blocks(prompts[4])).toHaveLength(1)
    expect(blocks(prompts[5])).toHaveLength(2)
  })

  it('[K2.14] a limit of the window, or of a block, that the program sets holds', async () => {
    const { asked, prompts } = await zoo(make(), { semanticRecall: { maxWindowTokens: 300, maxTokens: 200, topK: 2 } })
    for (const thing of things.slice(0, 5)) await asked(thing)
    for (const prompt of prompts) expect(tokensOf(blocks(prompt))).toBeLessThanOrEqual(300)
    expect(blocks(prompts[0])).toHaveLength(1)
    const larger = await zoo(make(), { semanticRecall: { maxTokens: 2_500, topK: 12 } })
    await larger.asked('gazelle')
    expect(tokensOf(blocks(larger.prompts[0]))).toBeGreaterThan(1_000)
  })
})

describe.each(placeKinds())('a window whose blocks have used their tokens, $name', ({ make }) => {
  const isNotice = (text: string) => text.includes('no more of them are added')

  it.each<[string, MemoryConfig]>([
    ['by default', {}],
    ['with limits of the program', { semanticRecall: { maxWindowTokens: 300, maxTokens: 200, topK: 2 } }],
    ['with one block that takes all', { semanticRecall: { maxWindowTokens: 200, maxTokens: 200 } }],
    ['with a limit that no message fits', { semanticRecall: { maxTokens: 5 } }],
  ])('[K2.18] says once that no more messages are added, %s', async (_, config) => {
    const { asked, prompts } = await zoo(make(), { lastMessages: 50, ...config })
    for (const thing of things) {
      await asked(thing)
      const shown = blocks(prompts.at(-1))
      const at = shown.findIndex(isNotice)
      // Each question has a block, or the notice precedes it.
      expect(shown.some((text) => text.includes(`The ${thing} `)) || at >= 0, thing).toBe(true)
      expect(shown.filter(isNotice).length, thing).toBeLessThanOrEqual(1)
      if (at >= 0) expect(at, thing).toBe(shown.length - 1)
    }
    expect(blocks(prompts.at(-1)).filter(isNotice)).toHaveLength(1)
    for (const [at, prompt] of prompts.slice(1).entries()) {
      const before = texts(prompts[at] ?? [])
      expect(texts(prompt).slice(0, before.length)).toEqual(before)
    }
  })

  it('[K2.18] recalls again after the next cut, and the notice leaves with the blocks', async () => {
    const { asked, prompts } = await zoo(make(), { lastMessages: 8, semanticRecall: { maxWindowTokens: 260, maxTokens: 200, topK: 2 } })
    const shown = []
    for (const thing of things) {
      await asked(thing)
      shown.push(blocks(prompts.at(-1)))
    }
    const noticed = shown.findIndex((list) => list.some(isNotice))
    expect(noticed).toBeGreaterThan(0)
    const again = shown.findIndex((list, at) => at > noticed && !list.some(isNotice))
    expect(again).toBeGreaterThan(noticed)
    expect(shown[again]?.join('\n')).toContain(`The ${things[again]} `)
  })

  it('[K2.18] says nothing where nothing was found', async () => {
    const { agent, model } = await zoo(make(), { semanticRecall: { maxTokens: 5 } })
    await agent.generate('Bonjour tout le monde', ask('q'))
    expect(blocks(model.calls.at(-1)?.prompt)).toEqual([])
  })
})

describe.each(placeKinds())('a TokenLimiter and recall, $name', ({ make }) => {
  it('[K2.15] leaves out the blocks of earlier runs before any message of the conversation', async () => {
    const { asked, prompts } = await zoo(make(), {}, { limit: 700 })
    for (const thing of things.slice(0, 6)) await asked(thing)
    const last = texts(prompts.at(-1) ?? [])
    expect(last.filter((text) => text.startsWith('user: What about'))).toHaveLength(6)
    expect(last.findLast(isBlock)).toContain('The otter ')
    for (const prompt of prompts) expect(tokensOf(texts(prompt))).toBeLessThanOrEqual(700 + 3 * prompt.length)
  })

  it('[K2.15] counts what the run itself adds, with the same result for the first run as for later ones', async () => {
    const { asked, prompts } = await zoo(make(), {}, { limit: 300, strategy: 'abort' })
    const outcomes = []
    for (const thing of things.slice(0, 3)) outcomes.push((await asked(thing)).tripwire?.reason)
    expect(outcomes).toEqual(Array.from({ length: 3 }, () => expect.stringContaining('more than the limit of 300')))
    expect(prompts).toEqual([])
    const wide = await zoo(make(), {}, { limit: 1_000, strategy: 'abort' })
    for (const thing of things.slice(0, 6)) expect((await wide.asked(thing)).tripwire).toBeUndefined()
    expect(wide.prompts).toHaveLength(6)
  })
})

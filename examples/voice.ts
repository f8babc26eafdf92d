// Voice: a user asks, the agent answers aloud, and the user speaks over it.
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'
import { CompositeVoice, type SpeechModel, type Voice } from 'heed/voice'

/** Stands for a transcription model: it understands these turns, one after the other. */
function ears(turns: string[]): Voice {
  return {
    listen: async () => turns.shift() ?? '',
    speak: () => Promise.reject(new Error('This voice only listens.')),
    getSpeakers: async () => [],
    getListener: async () => ({ enabled: true }),
  }
}

/** Stands for a speech model: 20 ms of silence for each character. */
const mouth: SpeechModel = {
  specificationVersion: 'v4', provider: 'example', modelId: 'mouth',
  doGenerate: async ({ text }) => ({ audio: new Uint8Array(text.length * 960), warnings: [], response: { timestamp: new Date(), modelId: 'mouth' } }),
}

export async function main(
  model: ModelConfig = scriptedModel(['By train. Or by bus, or by car, or on a horse through the hills.', 'The next one leaves at ten.']),
  print: (text: string) => void = console.log,
) {
  const voice = new CompositeVoice({ input: ears(['How do I get to Sintra?', 'When is the next train?']), output: mouth })
  const agent = new Agent({ id: 'guide', instructions: 'You answer in a few words.', model, voice })
  const heed = new Heed({ agents: { agent }, storage: new InMemoryStore() })
  const thread = { threadId: 'call-1', resourceId: 'user-1' }
  const session = await agent.voice.session({ ...thread, turn: { detect: 'caller' } })
  const speak = async () => {
    session.beginTurn()
    await session.write(new Uint8Array(9_600))
    session.endTurn()
  }

  await speak()
  const items: string[] = []
  for await (const event of session.events) {
    if (event.type === 'transcript') print(`user: ${event.text}`)
    if (event.type === 'sentence') print(`agent: ${event.text}`)
    // The player has played the first sentence: the user speaks over the second.
    if (event.type === 'sentence' && items.push(event.itemId) === 2) {
      session.played({ itemId: items[0] ?? '', ms: 180 })
      await speak()
    }
    if (event.type === 'heard') print(`(the user heard: ${event.text})`)
    if (event.type === 'state' && event.state === 'listening') break
  }
  await session.close()
  await heed.close()
}

if (import.meta.main) await main()

import { Agent, Heed, silentLogger } from '../../src/index.ts'
import { LibSQLStore } from '../../src/store/sqlite/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { soundOf, toneSpeech, toneTranscription } from './voices.ts'

// Talks on a thread, as a process that a test kills: it prints each sentence that it begins to say.

const [file = ''] = process.argv.slice(2)
const model = scriptedModel(['One. Two.', 'Three. Four. Five. Six.'], { pace: { deltaMs: 300 } })
const agent = new Agent({ id: 'guide', model, voice: new CompositeVoice({ input: toneTranscription(), output: toneSpeech() }) })
const heed = new Heed({ agents: { agent }, storage: new LibSQLStore({ url: `file:${file}` }), logger: silentLogger })
await heed.start()

const session = await agent.voice.session({ threadId: 'call', resourceId: 'user-1', turn: { detect: 'caller' } })
async function say(text: string): Promise<void> {
  session.beginTurn()
  await session.write(soundOf(text))
  session.endTurn()
}
const saying = [say('Hi.')]
for await (const event of session.events) {
  if (event.type === 'sentence') process.stdout.write(`${event.text}\n`)
  if (event.type === 'state' && event.state === 'listening' && model.callCount === 1 && saying.length === 1) saying.push(say('More.'))
}

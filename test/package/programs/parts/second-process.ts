// Another process on the same file: it watches the thread, says that it does, and prints what it sees of the run.
import { Agent, Heed, silentLogger, type ThreadSnapshot } from 'heed'
import { LibSQLStore } from 'heed/libsql'
import { scriptedModel } from 'heed/testing'

const [url = ''] = process.argv.slice(2)
const guide = new Agent({ id: 'guide', model: scriptedModel([]) })
const heed = new Heed({ agents: { guide }, storage: new LibSQLStore({ url }), logger: silentLogger })
const subscription = await guide.subscribeToThread({ resourceId: 'user-1', threadId: 'thread-1' })
process.stdout.write('watching\n')
let text = ''
for await (const chunk of subscription.stream) {
  if (chunk.type === 'text-delta') text += chunk.payload.text
  if (chunk.type === 'finish') break
  // On a busy machine the run may be over before the other process knows of this subscription: then a snapshot has the answer.
  if (chunk.type !== 'data-thread-snapshot') continue
  const { status, messages } = chunk.data as ThreadSnapshot
  const answer = messages.find(({ role }) => role === 'assistant')
  if (status !== 'idle' || !answer) continue
  text = answer.content.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  break
}
process.stdout.write(`${text}\n`)
await heed.close()

// React: the state that useThread gives a component, printed whenever the component would render.
import { Agent, Heed, InMemoryStore, type ModelConfig } from 'heed'
import { HeedClient } from 'heed/client'
import { WatchedThread } from 'heed/react'
import { serve } from 'heed/server'
import { scriptedModel } from 'heed/testing'

const script = () => scriptedModel([{ text: ['Take the train', ' at nine.'] }])

/** What a component shows of the thread: `useThread` returns the same state, and renders when it changes. */
function textOf({ messages }: ReturnType<WatchedThread['getSnapshot']>): string {
  const texts = messages.map(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(''))
  return texts.filter((text) => text !== '').join(' | ')
}

export async function main(model: ModelConfig = script(), print: (text: string) => void = console.log) {
  const guide = new Agent({ id: 'guide', instructions: 'You plan trips.', model })
  const server = await serve(new Heed({ agents: { guide }, storage: new InMemoryStore() }), { port: 0 })

  const client = new HeedClient({ baseUrl: server.url })
  const watched = new WatchedThread(client.getAgent('guide'), { resourceId: 'user-7', threadId: 'trip-1' })
  let shown = ''
  const answered = Promise.withResolvers<void>()
  const stop = watched.subscribe(() => {
    const state = watched.getSnapshot()
    const text = textOf(state)
    if (text !== shown) print(text)
    shown = text
    if (state.error) answered.reject(new Error(state.error.message))
    if (state.status === 'idle' && state.messages.some(({ role }) => role === 'assistant')) answered.resolve()
  })
  await watched.send('How do I get to Bern?')
  await answered.promise
  stop()
  await server.close()
  return shown
}

if (import.meta.main) await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined)

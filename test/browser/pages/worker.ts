import { HeedClient } from 'heed/client'

/** The same file is the page and its worker: the worker talks to the server, the page shows what it says. */
const query = new URLSearchParams(location.search)

if (typeof document === 'undefined') {
  const client = new HeedClient({ baseUrl: query.get('server') ?? '' })
  const guide = client.getAgent('guide')
  const thread = { threadId: query.get('thread') ?? '', resourceId: 'user-1' }
  const subscription = await guide.subscribeToThread(thread)
  await guide.sendMessage({ message: 'Hi from a worker.', ...thread })
  let text = ''
  for await (const chunk of subscription.chunks()) {
    if (chunk.type === 'text-delta' && 'payload' in chunk) text += chunk.payload.text
    if (chunk.type === 'finish') break
  }
  subscription.unsubscribe()
  const { messages } = await client.memory({ resourceId: 'user-1' }).listMessages({ threadId: thread.threadId })
  const refused = await guide.sendSignal({ signal: { type: 'nonsense' as never, contents: 'x' }, ...thread }).catch((error: unknown) => (error as { code: string }).code)
  postMessage({ text, roles: messages.map(({ role }) => role), refused })
} else {
  const worker = new Worker(`/worker.js${location.search}`, { type: 'module' })
  worker.addEventListener('message', ({ data }) => (document.title = JSON.stringify(data)))
  worker.addEventListener('error', ({ message }) => (document.title = `failed: ${message}`))
}

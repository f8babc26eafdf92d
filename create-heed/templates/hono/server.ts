import { serve } from '@hono/node-server'
import { apiKeys, createHandler } from 'heed/server'
import { Hono } from 'hono'
import { heed } from './heed.ts'

// A key of at least 16 characters for each user, who sees the threads of its resources alone.
const key = process.env.GUIDE_KEY ?? 'change-this-development-key'
const handler = createHandler(heed, { auth: apiKeys({ [key]: { id: 'user-7', resources: ['user-7'] } }) })

const app = new Hono()
app.get('/', (context) => context.text('The API is at /api.'))
app.all('/api/*', (context) => handler(context.req.raw))

const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 4111), hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}`)
})

// Streams end, and running threads continue when the server starts again.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    handler.close()
    server.close()
    void heed.close().then(() => process.exit(0))
  })
}

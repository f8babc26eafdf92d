import type { Heed } from 'heed'
import { createHandler, type Handler } from 'heed/server'
import { heed } from '../../../heed.ts'

export const dynamic = 'force-dynamic'

// `next dev` loads this module again when a file changes: the Heed before hands its threads over to the new one.
const kept = globalThis as typeof globalThis & { served?: { heed: Heed; handler: Handler } }
if (kept.served?.heed !== heed) {
  kept.served?.handler.close()
  void kept.served?.heed.close()
  // Everyone is user-7. Return the user of your session instead, or null.
  kept.served = { heed, handler: createHandler(heed, { auth: () => ({ id: 'user-7', resources: ['user-7'] }) }) }
}
const { handler } = kept.served

const answer = (request: Request) => handler(request)
export { answer as GET, answer as POST, answer as PUT, answer as PATCH, answer as DELETE }

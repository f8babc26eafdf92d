import { HeedError } from '../base/errors.ts'
import { createTool, type Tool, type ToolContext } from '../run/tools/tool.ts'
import type { PlainJSONSchema } from '../schema/schema.ts'
import type { SignalProvider } from './source.ts'

const what: PlainJSONSchema = {
  type: 'object',
  properties: { id: { type: 'string', minLength: 1, maxLength: 512, description: 'What to hear of, as the source names it.' } },
  required: ['id'],
  additionalProperties: false,
}

/** Tools with which an agent subscribes its own thread to a source, and no other thread. */
export function subscriptionTools(source: SignalProvider): Record<string, Tool> {
  const [subscribe, unsubscribe] = [`subscribe-${source.id}`, `unsubscribe-${source.id}`]
  return {
    [subscribe]: createTool({
      id: subscribe,
      description: `Be told on this thread when something happens to a thing of ${source.name ?? source.id}.`,
      inputSchema: what,
      idempotent: true,
      async execute(input, context) {
        const { id: externalId } = input as { id: string }
        await source.subscribe({ ...threadOf(context), externalId })
        return { subscribed: externalId }
      },
    }),
    [unsubscribe]: createTool({
      id: unsubscribe,
      description: `Be told no longer on this thread about a thing of ${source.name ?? source.id}.`,
      inputSchema: what,
      idempotent: true,
      async execute(input, context) {
        const { id: externalId } = input as { id: string }
        const { threadId, resourceId } = threadOf(context)
        return { unsubscribed: await source.unsubscribe({ threadId, resourceId, externalId }) }
      },
    }),
  }
}

/** Whatever the model passes, it is its own thread. */
function threadOf({ threadId, resourceId, agentId }: ToolContext): { threadId: string; resourceId: string; agentId: string } {
  if (threadId === undefined || resourceId === undefined) throw new HeedError('invalid_argument', 'Only an agent on a thread can subscribe: there is nowhere to tell it otherwise.')
  return { threadId, resourceId, agentId }
}

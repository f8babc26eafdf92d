import { createTool, type Tool } from '../run/tool.ts'
import type { PlainJSONSchema } from '../schema/schema.ts'
import type { ToolsInput } from '../run/tool-set.ts'
import type { AnyAgent } from './askable.ts'
import type { AgentsInput } from './config.ts'

const input: PlainJSONSchema = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'What the agent is asked to do, with everything it needs to know.' } },
  required: ['prompt'],
  additionalProperties: false,
}

/** Each agent as a tool: `agent-<name>`, taking a prompt and answering with a text. */
export function agentTools(agents: AgentsInput): ToolsInput {
  return Object.fromEntries(Object.entries(agents).map(([key, agent]) => [`agent-${key}`, agentTool(key, agent)]))
}

function agentTool(key: string, agent: AnyAgent): Tool {
  return createTool({
    id: `agent-${key}`,
    description: agent.description ?? `Asks the agent ${agent.name}.`,
    inputSchema: input,
    // Its thread remembers what it did: asking again goes on from there.
    idempotent: true,
    async execute(request, context) {
      const { prompt } = request as { prompt: string }
      const stream = await agent.stream(prompt, {
        abortSignal: context.abortSignal,
        requestContext: context.requestContext,
        ...(context.threadId === undefined
          ? {}
          : { memory: { thread: `${context.threadId}/${context.toolCallId}`, ...(context.resourceId === undefined ? {} : { resource: context.resourceId }) } }),
      })
      for await (const chunk of stream.fullStream) context.report(chunk)
      const result = await stream.result
      return { text: result.text }
    },
    toModelOutput: ({ text }) => ({ type: 'text', value: text }),
  }) as Tool
}


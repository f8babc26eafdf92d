import { HeedError } from '../errors.ts'
import { createTool, type Tool } from '../run/tool.ts'
import type { PlainJSONSchema } from '../schema/schema.ts'
import type { ToolsInput } from '../run/tool-set.ts'
import type { ThreadRuntime } from '../thread/runtime.ts'
import type { Agent } from './agent.ts'
import type { AgentsInput } from './config.ts'

const input: PlainJSONSchema = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'What the agent is asked to do, with everything it needs to know.' } },
  required: ['prompt'],
  additionalProperties: false,
}

/** Each agent as a tool: `agent-<name>`, taking a prompt and answering with a text. An agent that has no place of its own keeps its threads in `runtime`. */
export function agentTools(agents: AgentsInput, runtime: ThreadRuntime): ToolsInput {
  for (const [key, agent] of Object.entries(agents)) {
    if (typeof (agent as Partial<Agent> | undefined)?.stream !== 'function') {
      throw new HeedError('invalid_agent', `'${key}' in agents is not an agent. Make it with new Agent().`, { details: { key } })
    }
  }
  return Object.fromEntries(Object.entries(agents).map(([key, agent]) => [`agent-${key}`, agentTool(key, agent, runtime)]))
}

function agentTool(key: string, agent: Agent, runtime: ThreadRuntime): Tool {
  return createTool({
    id: `agent-${key}`,
    description: agent.description ?? `Asks the agent ${agent.name}.`,
    inputSchema: input,
    // Its thread remembers what it did: asking again goes on from there.
    idempotent: true,
    async execute(request, context) {
      const { prompt } = request as { prompt: string }
      // Nothing may come between: the call takes its place from the agent as it begins.
      agent.adopt(runtime)
      const stream = await agent.stream(prompt, {
        abortSignal: context.abortSignal,
        requestContext: context.requestContext,
        ...(context.threadId === undefined
          ? {}
          : { memory: { thread: `${context.threadId}/${context.toolCallId}`, ...(context.resourceId === undefined ? {} : { resource: context.resourceId }) } }),
      })
      for await (const chunk of stream.fullStream) context.report(chunk)
      const { text, tripwire, suspended } = await stream.result
      if (tripwire) throw new HeedError('tripwire', `${agent.name} refused: ${tripwire.reason}`)
      if (suspended.length > 0) throw new HeedError('tool_interrupted', `${agent.name} waits for a decision about ${suspended.map((call) => call.toolName).join(', ')} and has not answered.`)
      return { text }
    },
    toModelOutput: ({ text }) => ({ type: 'text', value: text }),
  })
}

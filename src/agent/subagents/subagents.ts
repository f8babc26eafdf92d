import { HeedError } from '../../base/errors.ts'
import type { Site } from '../../heed/site.ts'
import { createTool, nestingOf, type Nesting, type Tool, type ToolContext } from '../../run/tools/tool.ts'
import type { ToolsInput } from '../../run/tools/tool-set.ts'
import type { PlainJSONSchema } from '../../schema/schema.ts'
import type { Agent } from '../agent.ts'
import type { AgentsInput } from '../config.ts'
import { runOnChildThread } from './nested-run.ts'

const input: PlainJSONSchema = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'What the agent is asked to do, with everything it needs to know.' } },
  required: ['prompt'],
  additionalProperties: false,
}

/** Each agent as the tool `agent-<name>`, from a prompt to a text. An agent without a storage of its own uses `site`. */
export function agentTools(agents: AgentsInput, site: Site): ToolsInput {
  const defined = Object.entries(agents).filter((entry): entry is [string, Agent] => entry[1] !== undefined)
  for (const [key, agent] of defined) {
    if (typeof (agent as Partial<Agent> | undefined)?.stream !== 'function') {
      throw new HeedError('invalid_agent', `'${key}' in agents is not an agent. Create it with new Agent().`, { details: { key } })
    }
  }
  return Object.fromEntries(defined.map(([key, agent]) => [`agent-${key}`, agentTool(key, agent, site)]))
}

function agentTool(key: string, agent: Agent, site: Site): Tool {
  return createTool({
    id: `agent-${key}`,
    description: agent.description ?? `Asks the agent ${agent.name}.`,
    inputSchema: input,
    // A repeated call follows the run that the first one started.
    idempotent: true,
    async execute(request, context) {
      const { prompt } = request as { prompt: string }
      const nesting = nestingOf(context)
      // No await in between: another call may set the inherited storage.
      agent.inheritStorage(site)
      const resolved = agent.resolveStorage(context.requestContext)
      const here = resolved instanceof Promise ? await resolved : resolved
      const { threadId, resourceId } = context
      if (threadId === undefined || resourceId === undefined || !nesting)
        return { text: await runWithoutThread(here, prompt, context, nesting) }
      return { text: await runOnChildThread(here, prompt, { ...context, threadId, resourceId }, nesting) }
    },
    toModelOutput: ({ text }) => ({ type: 'text', value: text }),
  })
}

/** A run without a thread cannot be resumed, so a suspended call is an error. */
async function runWithoutThread(agent: Agent, prompt: string, context: ToolContext, nesting: Nesting | undefined): Promise<string> {
  const { abortSignal, requestContext } = context
  const stream = await agent.stream(prompt, { abortSignal, requestContext })
  for await (const chunk of stream.fullStream) context.report(chunk)
  const { text, tripwire, suspended, usage } = await stream.result
  nesting?.addUsage(usage)
  if (tripwire) throw new HeedError('tripwire', `${agent.name} refused: ${tripwire.reason}`)
  if (suspended.length > 0)
    throw new HeedError(
      'tool_interrupted',
      `${agent.name} waits for a decision about ${suspended.map((call) => call.toolName).join(', ')} and has not answered.`,
    )
  return text
}

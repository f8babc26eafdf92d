import { HeedError } from '../base/errors.ts'
import { createTool, type Tool, type ToolContext } from '../run/tools/tool.ts'
import type { PlainJSONSchema } from '../schema/schema.ts'
import { nestingOf, type Nesting } from '../run/tools/nesting.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { Site } from '../heed/site.ts'
import type { Agent } from './agent.ts'
import type { AgentsInput } from './config.ts'
import { askOnThread } from './nested-run.ts'

const input: PlainJSONSchema = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'What the agent is asked to do, with everything it needs to know.' } },
  required: ['prompt'],
  additionalProperties: false,
}

/** Each agent as a tool: `agent-<name>`, taking a prompt and answering with a text. An agent that has no place of its own keeps its threads in `runtime`. */
export function agentTools(agents: AgentsInput, site: Site): ToolsInput {
  const given = Object.entries(agents).filter((entry): entry is [string, Agent] => entry[1] !== undefined)
  for (const [key, agent] of given) {
    if (typeof (agent as Partial<Agent> | undefined)?.stream !== 'function') {
      throw new HeedError('invalid_agent', `'${key}' in agents is not an agent. Make it with new Agent().`, { details: { key } })
    }
  }
  return Object.fromEntries(given.map(([key, agent]) => [`agent-${key}`, agentTool(key, agent, site)]))
}

function agentTool(key: string, agent: Agent, site: Site): Tool {
  return createTool({
    id: `agent-${key}`,
    description: agent.description ?? `Asks the agent ${agent.name}.`,
    inputSchema: input,
    // Asked again, it is followed and not asked.
    idempotent: true,
    async execute(request, context) {
      const { prompt } = request as { prompt: string }
      const nesting = nestingOf(context)
      // Nothing may come between: the call takes its place from the agent as it begins.
      agent.inheritStorage(site)
      const placing = agent.resolveStorage(context.requestContext)
      const here = placing instanceof Promise ? await placing : placing
      const { threadId, resourceId } = context
      if (threadId === undefined || resourceId === undefined || !nesting) return { text: await askAlone(here, prompt, context, nesting) }
      return { text: await askOnThread(here, prompt, { ...context, threadId, resourceId }, nesting) }
    },
    toModelOutput: ({ text }) => ({ type: 'text', value: text }),
  })
}

/** Without a thread there is nothing to come back to: whoever would have to be asked can't be. */
async function askAlone(agent: Agent, prompt: string, context: ToolContext, nesting: Nesting | undefined): Promise<string> {
  const { abortSignal, requestContext } = context
  const stream = await agent.stream(prompt, { abortSignal, requestContext })
  for await (const chunk of stream.fullStream) context.report(chunk)
  const { text, tripwire, suspended, usage } = await stream.result
  nesting?.addUsage(usage)
  if (tripwire) throw new HeedError('tripwire', `${agent.name} refused: ${tripwire.reason}`)
  if (suspended.length > 0) throw new HeedError('tool_interrupted', `${agent.name} waits for a decision about ${suspended.map((call) => call.toolName).join(', ')} and has not answered.`)
  return text
}

import { AsyncLocalStorage } from 'node:async_hooks'
import { HeedError } from '../base/errors.ts'
import type { Site } from '../heed/site.ts'
import type { Usage } from '../message/chunk.ts'
import { joinTaint, taintOf, withTaint } from '../message/taint.ts'
import { createTool, nestingOf, type Nesting, type Tool, type ToolContext } from '../run/tools/tool.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { PlainJSONSchema } from '../schema/schema.ts'
import { childDepth, childThreadId } from '../store/contract/thread-row.ts'
import { askOnChildThread, childRunError } from '../thread/send/child-turns.ts'
import type { Agent } from './agent.ts'
import type { AgentsInput } from './config.ts'
import { checkInput, inputRows } from './input.ts'

const input: PlainJSONSchema = {
  type: 'object',
  properties: { prompt: { type: 'string', description: 'What the agent is asked to do, with everything it needs to know.' } },
  required: ['prompt'],
  additionalProperties: false,
}

const defaultMaxDepth = 8

/**
 * Each agent as the tool `agent-<name>`, from a prompt to a text. An agent without a storage of its own uses `site`. Agents may call
 * agents down to `maxDepth`.
 */
export function agentTools(agents: AgentsInput, site: Site, maxDepth = defaultMaxDepth): ToolsInput {
  const defined = Object.entries(agents).filter((entry): entry is [string, Agent] => entry[1] !== undefined)
  for (const [key, agent] of defined) {
    if (typeof (agent as Partial<Agent> | undefined)?.stream !== 'function') {
      throw new HeedError('invalid_agent', `'${key}' in agents is not an agent. Create it with new Agent().`, { details: { key } })
    }
  }
  return Object.fromEntries(defined.map(([key, agent]) => [`agent-${key}`, agentTool(key, agent, site, maxDepth)]))
}

const agentToolsMade = new WeakSet<Tool>()

/** Whether this tool calls an agent. */
export function isAgentTool(tool: Tool): boolean {
  return agentToolsMade.has(tool)
}

function agentTool(key: string, agent: Agent, site: Site, maxDepth: number): Tool {
  const tool = createTool({
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
      const depth = 1 + (threadId === undefined ? (depthWithoutThread.getStore() ?? 0) : childDepth(threadId))
      if (depth > maxDepth) throw tooDeep(agent, context.agentId, maxDepth)
      if (threadId === undefined || resourceId === undefined || !nesting)
        return { text: await depthWithoutThread.run(depth, () => runWithoutThread(here, prompt, context, nesting)) }
      return { text: await runOnChildThread(here, prompt, { ...context, threadId, resourceId }, nesting) }
    },
    toModelOutput: ({ text }) => ({ type: 'text', value: text }),
  }) as Tool
  agentToolsMade.add(tool)
  return tool
}

/** How many agents have called agents, where no thread has a parent to count. */
const depthWithoutThread = new AsyncLocalStorage<number>()

function tooDeep(agent: Agent, caller: string, maxDepth: number): HeedError {
  const message = `Agent '${caller}' can't call agent '${agent.id}': agents have called agents ${maxDepth} times in a row.`
  return new HeedError('agents_too_deep', `${message} Answer without it, or allow more with maxAgentDepth.`, {
    details: { agentId: agent.id, maxAgentDepth: maxDepth },
  })
}

/** A run without a thread cannot be resumed, so a suspended call is an error. */
async function runWithoutThread(agent: Agent, prompt: string, context: ToolContext, nesting: Nesting | undefined): Promise<string> {
  const { abortSignal, requestContext, taintedBy } = context
  const asked = taintedBy.length === 0 ? prompt : { role: 'user' as const, content: prompt, metadata: { taintedBy: [...taintedBy] } }
  const stream = await agent.stream(asked, { abortSignal, requestContext })
  for await (const chunk of stream.fullStream) (nesting ?? context).report(chunk)
  const { text, tripwire, suspended, usage, messages } = await stream.result
  nesting?.addUsage(usage)
  nesting?.addTaint(messages.map((message) => taintOf(message.content)).reduce(joinTaint, []))
  if (tripwire) throw new HeedError('tripwire', `${agent.name} refused: ${tripwire.reason}`)
  if (suspended.length > 0)
    throw new HeedError(
      'tool_interrupted',
      `${agent.name} waits for a decision about ${suspended.map((call) => call.toolName).join(', ')} and has not answered.`,
    )
  return text
}

/** A call on a thread. */
type Call = ToolContext & { threadId: string; resourceId: string }

/**
 * Runs an agent on the child thread of this call and returns its text. The ids of the input and the run derive from the call, so that the
 * agent runs once however often the call is executed: after a crash, or after a decision about a suspended call of the child.
 */
async function runOnChildThread(agent: Agent, prompt: string, call: Call, nesting: Nesting): Promise<string> {
  const { resourceId, requestContext, abortSignal, threadId, runId } = call
  const rows = inputRows(agent, prompt).map((row) => ({ ...row, content: withTaint(row.content, call.taintedBy) }))
  checkInput(rows, true)
  const end = await askOnChildThread(agent.threads(), agent, {
    scope: { threadId: childThreadId(threadId, call.toolCallId), resourceId },
    asker: { threadId, runId },
    // With the step: some providers restart the numbers of their calls in every step.
    id: `${runId}/${nesting.step}/${call.toolCallId}`,
    rows,
    options: { requestContext },
    decision: nesting.decision,
    abortSignal,
    isHandedOver: () => nesting.isHandedOver(),
    emit: (chunk) => nesting.report(chunk),
  })
  if (end.suspended) {
    const { kind, payload, request, child } = end.suspended
    return nesting.suspend({ kind, child, ...(payload === undefined ? {} : { payload }), ...(request ? { request } : {}) })
  }
  const { run, text, taintedBy } = end
  if (run.usage) nesting.addUsage(run.usage as unknown as Usage)
  // A run that failed may have left traces too: its error, and watches of the calling thread.
  nesting.addTaint(taintedBy)
  if (run.status !== 'finished') throw childRunError(agent.name, run)
  return text
}

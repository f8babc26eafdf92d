import { AsyncLocalStorage } from 'node:async_hooks'
import { describe, HeedError, isHeedError } from '../base/errors.ts'
import type { Site } from '../heed/site.ts'
import type { Chunk, Usage } from '../message/chunk.ts'
import { joinTaint, taintOf, withTaint } from '../message/taint.ts'
import { isProviderError } from '../run/model/provider-error.ts'
import { createTool, nestingOf, type NestedDecision, type Nesting, type Tool, type ToolContext } from '../run/tools/tool.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import type { PlainJSONSchema } from '../schema/schema.ts'
import { childDepth, childThreadId } from '../store/contract/thread-row.ts'
import type { RunRow, SuspendedCall } from '../store/contract/threads.ts'
import { RunFollower, storedAnswer } from '../thread/cluster/run-follower.ts'
import { decide } from '../thread/control/resume.ts'
import type { ThreadRuntime } from '../thread/runtime/runtime.ts'
import { enqueueTurn } from '../thread/send/turns.ts'
import { visibleSuspendedCalls } from '../thread/stream/snapshot.ts'
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
  for await (const chunk of stream.fullStream) context.report(chunk)
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
  const runtime = agent.threads()
  const { resourceId, requestContext, abortSignal } = call
  const scope = { threadId: childThreadId(call.threadId, call.toolCallId), resourceId }
  // With the step: some providers restart the numbers of their calls in every step.
  const id = `${call.runId}/${nesting.step}/${call.toolCallId}`
  const rows = inputRows(agent, prompt).map((row) => ({ ...row, content: withTaint(row.content, call.taintedBy) }))
  checkInput(rows, true)
  await runtime.open()
  const stop = new AbortController()
  const published = new Map<string, PublishedCall>()
  const follower = new RunFollower(runtime, scope, id, (chunk) => {
    recordSuspension(published, chunk)
    call.report(chunk)
  })
  try {
    if (nesting.decision) await forwardDecision(runtime, agent, resourceId, nesting.decision)
    const memory = { thread: scope.threadId, resource: resourceId }
    await enqueueTurn(runtime, agent, {
      ...scope,
      thread: { parentId: call.threadId },
      askedBy: { threadId: call.threadId, runId: call.runId },
      id,
      runId: id,
      rows,
      options: { requestContext, abortSignal: stop.signal, memory },
    })
    const run = await follower.end(id, abortSignal)
    if (run.status === 'suspended') return await suspendFor(runtime, nesting, run, published)
    runtime.waiters.takeRetainedOptions(id)
    if (run.usage) nesting.addUsage(run.usage as unknown as Usage)
    // A run that failed may have left traces too: its error, and watches of the calling thread.
    const { text, taintedBy } = await storedAnswer(runtime.store, scope, id)
    nesting.addTaint(taintedBy)
    if (run.status !== 'finished') throw childRunError(agent.name, run)
    return text
  } catch (error) {
    if (abortSignal.aborted && !nesting.isHandedOver()) {
      stop.abort(abortSignal.reason)
      await abortChild(runtime, follower, id)
    }
    throw error
  } finally {
    follower.close()
  }
}

/** Applies the decision about the outer call to the child's call. A call that is decided already stays unchanged. */
async function forwardDecision(
  runtime: ThreadRuntime,
  agent: Agent,
  resourceId: string,
  { child, ...decision }: NestedDecision,
): Promise<void> {
  if (decision.approved === undefined && decision.resumeData === undefined) return
  const { toolName: _, ...call } = child
  try {
    await decide(runtime, agent, { ...call, resourceId, ...decision })
  } catch (error) {
    if (!isHeedError(error) || error.code !== 'run_not_suspended') throw error
  }
}

/** Suspends the outer call for the first undecided call of the child; the next one follows its decision. */
async function suspendFor(
  runtime: ThreadRuntime, nesting: Nesting, run: RunRow, published: ReadonlyMap<string, PublishedCall>,
): Promise<never> {
  const { threadId, runId, step, suspended } = run
  const open = suspended.find((call) => !call.decision)
  if (!open) throw new HeedError('store_failed', `Run ${runId} is suspended, but none of its calls is undecided.`)
  const { kind, toolCallId, toolName, request: stored } = open
  // The follower missed chunks that were published before it subscribed.
  const { payload, request } = published.get(toolCallId) ?? (await visibleSuspendedCalls(runtime, run, [open]))[0] ?? {}
  return nesting.suspend({
    kind,
    ...(kind === 'suspend' && payload !== undefined ? { payload } : {}),
    ...(request ? { request } : {}),
    child: { threadId, runId, step, toolCallId, toolName, ...(stored ? { approvalId: stored.id } : {}) },
  })
}

/** A suspended call as its run published it. */
type PublishedCall = Pick<SuspendedCall, 'payload' | 'request'>

/** Keeps the suspension as the child published it: the outer stream may show nothing else. */
function recordSuspension(published: Map<string, PublishedCall>, chunk: Chunk): void {
  if (chunk.type !== 'tool-call-suspended' && chunk.type !== 'tool-call-approval') return
  const { toolCallId, request } = chunk.payload
  const payload = chunk.type === 'tool-call-suspended' ? { payload: chunk.payload.suspendPayload } : {}
  published.set(toolCallId, { ...payload, ...(request ? { request } : {}) })
}

function childRunError(name: string, { status, error }: RunRow): HeedError {
  // The thread of the child run has the words of its provider.
  const text = isProviderError(error?.code) ? `the provider of its model failed (${String(error?.code)})` : error?.message
  const why = typeof text === 'string' ? `: ${text}` : '.'
  if (status === 'rejected') return new HeedError('tripwire', `${name} refused${why}`)
  if (status === 'aborted') return new HeedError('aborted', `${name} was aborted before it answered.`)
  return new HeedError('tool_interrupted', `${name} failed${why}`)
}

async function abortChild(runtime: ThreadRuntime, follower: RunFollower, id: string): Promise<void> {
  try {
    await follower.abort(id)
  } catch (error) {
    if (!runtime.closing) runtime.logger.error('the run of a subagent could not be aborted', { runId: id, error: describe(error) })
  }
}

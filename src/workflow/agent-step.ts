import { HeedError } from '../base/errors.ts'
import { isObject, type JSONObject, type JSONValue } from '../base/json.ts'
import { checkInput, inputRows } from '../agent/input.ts'
import type { Askable } from '../agent/askable.ts'
import type { ApprovalRequest, ChildCall, Usage } from '../message/chunk.ts'
import { structuredOutput } from '../run/output/structured-output.ts'
import type { RequestContext } from '../run/request-context.ts'
import { compileSchema } from '../schema/compile.ts'
import type { Schema } from '../schema/schema.ts'
import { childThreadId } from '../store/contract/thread-row.ts'
import type { RunRow } from '../store/contract/threads.ts'
import { abortRun } from '../thread/control/abort.ts'
import { askOnChildThread, childRunError } from '../thread/send/child-turns.ts'
import { makeStep, stepHooks, stepNestingOf, type Step, type StepContext, type StepNesting, type StepSeat } from './step.ts'

/** An agent as a step calls it. */
export interface AgentLike<Id extends string = string> {
  readonly id: Id
  readonly description?: string | undefined
  generate(prompt: string, options: AgentStepCall): Promise<AgentAnswer>
}

interface AgentStepCall {
  requestContext: RequestContext
  abortSignal: AbortSignal
  structuredOutput?: { schema: Schema }
}

interface AgentAnswer {
  text: string
  object: unknown
  finishReason: string
  error?: Error | undefined
  tripwire?: { reason: string; processorId?: string } | undefined
}

/** An agent of Heed: its runs wait for decisions, and on threads they go on in another process. */
interface HeedAgent extends AgentLike, Omit<Askable, 'id'> {
  inheritStorage(site: never): void
  resolveStorage(requestContext?: RequestContext): HeedAgent | Promise<HeedAgent>
  stream(prompt: string, options: AgentStepCall): Promise<AgentRun>
  approveToolCall(call: DecidedCall): Promise<AgentRun>
  declineToolCall(call: DecidedCall & { reason?: string }): Promise<AgentRun>
  resumeStream(resumeData: JSONValue, call: DecidedCall): Promise<AgentRun>
}

interface AgentRun {
  readonly fullStream: AsyncIterable<unknown>
  readonly result: Promise<AgentAnswer & { runId: string; totalUsage: Usage; suspended: ReadonlyArray<Omit<WaitingCall, 'child'>> }>
}

interface DecidedCall {
  runId: string
  toolCallId?: string
  approvalId?: string
}

/** A call of a tool that waits for a decision. */
interface WaitingCall {
  kind: 'approval' | 'suspend'
  toolCallId: string
  toolName: string
  args: JSONValue
  payload?: JSONValue
  request?: ApprovalRequest
}

function isHeedAgent(agent: AgentLike): agent is HeedAgent {
  return ['inheritStorage', 'resolveStorage', 'stream', 'approveToolCall'].every((name) => (
    typeof (agent as unknown as Record<string, unknown>)[name] === 'function'
  ))
}

const promptSchema: Schema = { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] }
const textSchema: Schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
/** The answer to a question whether a tool may run. */
export const approvalSchema: Schema = {
  type: 'object', properties: { approved: { type: 'boolean' }, reason: { type: 'string' } }, required: ['approved'],
  additionalProperties: false,
}

/** Whether a step suspended to ask whether a tool may run. */
export function asksForApproval(suspended: unknown): boolean {
  return isObject(suspended) && suspended.type === 'approval'
}

/**
 * A step that asks an agent. In a run on a thread, the agent answers on a child thread: it is asked once however often the step begins, it
 * goes on in another process, and a call of it that waits for a decision suspends the step.
 */
export function agentStep(agent: AgentLike, structured: { schema: Schema } | undefined): Step<string, never, unknown, never> {
  return makeStep({
    id: agent.id,
    description: agent.description,
    inputSchema: promptSchema,
    outputSchema: structured?.schema ?? textSchema,
    // A step that begins again follows the run of the agent.
    idempotent: isHeedAgent(agent),
    async execute(context: StepContext) {
      const { prompt } = context.inputData as { prompt: string }
      // As JSON it is stored with the run of the agent, and counts in another process too.
      const schema = structured && ((await compileSchema(structured.schema, `the schema of step '${agent.id}'`).jsonSchema()) as Schema)
      const answer = await ask(agent, prompt, schema, context)
      return schema ? answer.object : { text: answer.text }
    },
    [stepHooks]: {
      resumeSchema: (suspended) => (asksForApproval(suspended) ? approvalSchema : undefined),
      register(site) {
        if (!isHeedAgent(agent)) return
        agent.inheritStorage(site as never)
        if (!agent.storageDependsOnRequest) agent.threads().register(agent)
      },
      async endChild({ threadId, runId }, seat, requestContext) {
        if (!isHeedAgent(agent)) return
        const here = await agentAt(agent, seat, requestContext)
        await abortRun(here.threads(), { threadId }, { expectedRunId: runId })
      },
    },
  })
}

type Answer = Pick<AgentAnswer, 'text' | 'object'>

function ask(agent: AgentLike, prompt: string, schema: Schema | undefined, context: StepContext): Promise<Answer> {
  const nesting = stepNestingOf(context)
  if (!isHeedAgent(agent) || !nesting) return askForeign(agent, prompt, schema, context)
  const { seat } = nesting
  return seat ? askOnThread(agent, prompt, schema, context, nesting, seat) : askInMemory(agent, prompt, schema, context, nesting)
}

function callOptions(schema: Schema | undefined, { requestContext, abortSignal }: StepContext): AgentStepCall {
  return { requestContext, abortSignal, ...(schema ? { structuredOutput: { schema } } : {}) }
}

async function askForeign(agent: AgentLike, prompt: string, schema: Schema | undefined, context: StepContext): Promise<Answer> {
  const answer = await agent.generate(prompt, callOptions(schema, context))
  if (answer.finishReason === 'suspended') {
    throw new HeedError('step_failed', `Agent '${agent.id}' waits for a decision, which only agents of Heed can wait for in a step.`)
  }
  return checked(agent, answer)
}

async function askInMemory(
  agent: HeedAgent, prompt: string, schema: Schema | undefined, context: StepContext, nesting: StepNesting,
): Promise<Answer> {
  const decision = decisionOf(context, nesting)
  const run = decision ? await decide(agent, decision) : await agent.stream(prompt, callOptions(schema, context))
  for await (const chunk of run.fullStream) context.writer.write(chunk)
  const { runId, suspended: [waiting], ...answer } = await run.result
  nesting.addUsage(answer.totalUsage)
  if (waiting) {
    const { toolCallId, toolName, request } = waiting
    // It is decided by its run: a run without a thread has no other name.
    const child = { threadId: '', runId, step: 0, toolCallId, toolName, ...(request ? { approvalId: request.id } : {}) }
    return nesting.suspend(question(agent, waiting, child), child)
  }
  if (answer.finishReason === 'aborted') context.abortSignal.throwIfAborted()
  return checked(agent, answer)
}

function decide(agent: HeedAgent, { child, approved, reason, resumeData }: StepDecision): Promise<AgentRun> {
  const { runId, toolCallId, approvalId } = child
  const call: DecidedCall = { runId, toolCallId, ...(approvalId === undefined ? {} : { approvalId }) }
  if (approved === undefined) return agent.resumeStream(resumeData ?? null, call)
  return approved ? agent.approveToolCall(call) : agent.declineToolCall({ ...call, ...(reason === undefined ? {} : { reason }) })
}

function checked(agent: AgentLike, answer: AgentAnswer): Answer {
  if (answer.tripwire) throw refusal(agent, answer.tripwire)
  if (answer.error) throw answer.error
  return answer
}

function refusal({ id }: AgentLike, { reason, processorId }: { reason: string; processorId?: string | undefined }): HeedError {
  return new HeedError('tripwire', `${id} refused: ${reason}`, { details: { reason, processorId } })
}

/** The agent with the storage that its child thread is in. */
async function agentAt(agent: HeedAgent, { site }: StepSeat, requestContext: RequestContext): Promise<HeedAgent> {
  // No await in between: another step may set the inherited storage.
  agent.inheritStorage(site as never)
  return agent.resolveStorage(requestContext)
}

async function askOnThread(
  agent: HeedAgent, prompt: string, schema: Schema | undefined, context: StepContext, nesting: StepNesting, seat: StepSeat,
): Promise<Answer> {
  const { requestContext, abortSignal } = context
  const here = await agentAt(agent, seat, requestContext)
  const rows = inputRows(here, prompt)
  checkInput(rows, true)
  const { threadId, resourceId, runId } = seat
  // An attempt after a failure asks again, on a thread without the one before.
  const name = nesting.failures === 0 ? nesting.path : `${nesting.path}~${nesting.failures}`
  const end = await askOnChildThread(here.threads(), here, {
    scope: { threadId: childThreadId(threadId, name), resourceId },
    asker: { threadId, runId },
    id: `${threadId}:${name}`,
    rows,
    options: { requestContext, ...(schema ? { structuredOutput: { schema } } : {}) },
    decision: decisionOf(context, nesting),
    abortSignal,
    isHandedOver: () => nesting.isHandedOver(),
    emit: (chunk) => context.writer.write(chunk),
  })
  if (end.suspended) {
    const { child, ...waiting } = end.suspended
    return nesting.suspend(question(agent, { ...waiting, toolCallId: child.toolCallId }, child), child)
  }
  const { run, text, result } = end
  if (run.usage) nesting.addUsage(run.usage as unknown as Usage)
  if (run.status !== 'finished') throw runError(agent, run)
  return { text, object: schema && (result?.object ?? (await readObject(agent, schema, text))) }
}

/** The value of an answer of a run that ended in another process. */
async function readObject({ id }: AgentLike, schema: Schema, text: string): Promise<unknown> {
  const read = await (await structuredOutput({ schema })).read(text)
  if (read.ok) return read.value
  throw new HeedError('step_output_invalid', `The answer of agent '${id}' does not match its schema: ${read.problem}`)
}

function runError(agent: HeedAgent, run: RunRow): HeedError {
  const { status, error } = run
  if (status === 'rejected') {
    const processorId = typeof error?.processorId === 'string' ? error.processorId : undefined
    return refusal(agent, { reason: typeof error?.message === 'string' ? error.message : '', processorId })
  }
  const { message } = childRunError(agent.name, run)
  // An attempt more may help against what failed at the provider, and against nothing that a person has ended.
  return new HeedError(status === 'aborted' ? 'aborted' : 'step_failed', message, { retryable: status === 'failed' })
}

/** What the step suspends with: the call, and where it may be decided. */
function question(agent: HeedAgent, { kind, toolCallId, toolName, args, payload, request }: WaitingCall, child: ChildCall): JSONObject {
  return {
    type: kind, agentId: agent.id, toolCallId, toolName, args,
    ...(payload === undefined ? {} : { payload }),
    ...(child.threadId === '' ? {} : { threadId: child.threadId }),
    ...(request ? { approvalId: request.id } : {}),
  }
}

/** What the caller that resumed the step has decided. */
interface StepDecision {
  child: ChildCall
  approved?: boolean
  reason?: string
  resumeData?: JSONValue
}

function decisionOf({ resumeData, suspendData }: StepContext, { child }: StepNesting): StepDecision | undefined {
  if (!child || resumeData === undefined) return undefined
  if (!asksForApproval(suspendData)) return { child, resumeData: resumeData as JSONValue }
  const { approved, reason } = resumeData as { approved: boolean; reason?: string }
  return { child, approved, ...(reason === undefined ? {} : { reason }) }
}

import { HeedError, isHeedError } from '../base/errors.ts'
import type { JSONObject } from '../base/json.ts'
import type { Site } from '../heed/site.ts'
import type { RequestContext } from '../run/request-context.ts'
import { createTool, nestingOf, type Tool, type ToolContext } from '../run/tools/tool.ts'
import type { ToolsInput } from '../run/tools/tool-set.ts'
import { compileSchema } from '../schema/compile.ts'
import type { PlainJSONSchema, Schema } from '../schema/schema.ts'
import { expectObject, resolve, type AgentConfig } from './config.ts'

/**
 * A workflow that an agent may execute: one of `heed/workflows`, or of another engine. Its runs are named by the calls of the agent: a run
 * that is started twice under one id is one run, also after a crash.
 */
export interface WorkflowLike {
  readonly id: string
  readonly description?: string | undefined
  readonly inputSchema?: Schema | undefined
  createRun(options: { runId: string; resourceId?: string }): RunLike
  /** Called before the first run: the storage of the agent, for a workflow without one of its own. */
  inheritStorage?(site: Site): void
}

/** One run of such a workflow. */
export interface RunLike {
  /** Starts the run, or follows the one that was started under its id. Resolves when it has ended or waits for a caller. */
  start(args?: { inputData?: unknown; initialState?: unknown; requestContext?: RequestContext }): Promise<RunOutcome>
  /** Answers the step that waits. Resolves as `start` does. */
  resume(args?: { step?: string; resumeData?: unknown }): Promise<RunOutcome>
  cancel(): Promise<void>
  /** What became of the run so far; null for one that was not started. */
  status(): Promise<RunOutcome | null>
  /** What happens in the run from now on. An engine without it shows its start and end alone. */
  observe?(): AsyncIterable<unknown>
}

/** What became of a run, as JSON. */
export interface RunOutcome {
  status: string
  result?: unknown
  error?: unknown
  /** With the status `suspended`: the steps that wait for an answer, and what each of them asks. */
  suspended?: readonly string[]
  suspendPayload?: Readonly<Record<string, unknown>>
}

/** Workflows by the names that the model calls them by. Undefined entries are left out. */
export type WorkflowsInput = Record<string, WorkflowLike | undefined>

/** The workflows of an agent for a request, without entries that are undefined. */
export async function listWorkflows(
  workflows: AgentConfig['workflows'], requestContext: RequestContext, agentId: string,
): Promise<Record<string, WorkflowLike>> {
  const found = expectObject(await resolve(workflows ?? {}, { requestContext }), 'workflows', agentId)
  return Object.fromEntries(Object.entries(found).flatMap(([key, workflow]) => (workflow === undefined ? [] : [[key, workflow]])))
}

/** Each workflow as the tool `workflow-<name>`: from `{ inputData, initialState? }` to `{ result, runId }`. */
export async function workflowTools(workflows: WorkflowsInput, site: Site): Promise<ToolsInput> {
  const tools: ToolsInput = {}
  for (const [key, workflow] of Object.entries(workflows)) {
    if (workflow === undefined) continue
    if (typeof (workflow as Partial<WorkflowLike> | null)?.createRun !== 'function') {
      const message = `'${key}' in workflows is not a workflow. Create it with createWorkflow() of heed/workflows.`
      throw new HeedError('invalid_agent', message, { details: { key } })
    }
    tools[`workflow-${key}`] = await workflowTool(key, workflow, site)
  }
  return tools
}

async function workflowTool(key: string, workflow: WorkflowLike, site: Site): Promise<Tool> {
  const { id, description = `Executes the workflow ${id}.`, inputSchema } = workflow
  const given = inputSchema === undefined ? {} : await compileSchema(inputSchema, `inputSchema of workflow '${id}'`).jsonSchema()
  const input: PlainJSONSchema = {
    type: 'object', properties: { inputData: given, initialState: { type: 'object' } }, ...(inputSchema ? { required: ['inputData'] } : {}),
    additionalProperties: false,
  }
  return createTool({
    id: `workflow-${key}`,
    description,
    inputSchema: input,
    // The run has the name of the call: a repeated call follows it.
    idempotent: true,
    async execute(request, context) {
      const { inputData, initialState } = request as { inputData?: unknown; initialState?: JSONObject }
      const runId = `${context.runId}/${nestingOf(context)?.step ?? 0}/${context.toolCallId}`
      // A call without a thread stores nothing.
      if (context.threadId !== undefined) workflow.inheritStorage?.(site)
      const run = workflow.createRun({ runId, ...(context.resourceId === undefined ? {} : { resourceId: context.resourceId }) })
      const { requestContext } = context
      const start = () => run.start({ inputData, requestContext, ...(initialState === undefined ? {} : { initialState }) })
      const { resumeData } = context
      const outcome = await observed(run, context, () => (resumeData === undefined ? start() : resume(run, resumeData, start)))
      return resultOf(id, runId, outcome, context)
    },
  })
}

/** Reports the chunks of the run while it works, and cancels it when the call is aborted. */
async function observed(run: RunLike, context: ToolContext, work: () => Promise<RunOutcome>): Promise<RunOutcome> {
  const chunks = run.observe?.()[Symbol.asyncIterator]()
  const reading = chunks && (async () => {
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) context.report(next.value)
  })()
  // A run that was not started yet can't be observed by every engine; its result counts.
  reading?.catch(() => {})
  const onAbort = () => {
    // Another process continues the agent, and the workflow with it.
    if (!nestingOf(context)?.isHandedOver()) run.cancel().catch(() => {})
  }
  context.abortSignal.addEventListener('abort', onAbort, { once: true })
  try {
    return await work()
  } finally {
    context.abortSignal.removeEventListener('abort', onAbort)
    void chunks?.return?.()
  }
}

/** A call that is executed again after its answer was sent finds the run where the answer has taken it. */
async function resume(run: RunLike, resumeData: unknown, start: () => Promise<RunOutcome>): Promise<RunOutcome> {
  const [step] = (await run.status())?.suspended ?? []
  try {
    return await run.resume({ ...(step === undefined ? {} : { step }), resumeData })
  } catch (error) {
    if (!isHeedError(error) || error.code !== 'run_not_suspended') throw error
    return start()
  }
}

function resultOf(id: string, runId: string, outcome: RunOutcome, context: ToolContext): { result: unknown; runId: string } {
  const { status, result, error, suspended: [path] = [], suspendPayload } = outcome
  if (status === 'success') return { result, runId }
  if (status === 'suspended' && path !== undefined) {
    return context.suspend({ workflowId: id, runId, path, payload: suspendPayload?.[path] ?? null })
  }
  const why = error instanceof Error ? `: ${error.message}` : '.'
  throw new HeedError('tool_failed', `Workflow '${id}' ended as ${status}${why}`, { details: { runId, status }, cause: error })
}

import { HeedError } from '../errors.ts'
import type { JSONValue } from '../json.ts'
import { RequestContext } from '../run/request-context.ts'
import { describeIssues } from '../schema/compile.ts'
import type { SuspendedCall } from '../store/contract.ts'
import type { Askable } from './askable.ts'
import type { AgentConfig } from './config.ts'
import { resolveToolSet } from './prepare.ts'

/** An answer to a call that suspended itself, addressed by its thread or by its run. */
interface Resume {
  threadId?: string
  resourceId?: string
  runId?: string
  toolCallId?: string | undefined
  resumeData?: JSONValue
}

/**
 * Refuses data that the waiting tool's `resumeSchema` doesn't allow, before anything is decided: the call goes on waiting. Only the
 * agent's own tools are known here; one that came with the call checks for itself when it runs.
 */
export async function checkResumeData(agent: Askable, config: AgentConfig, resume: Resume): Promise<void> {
  if (resume.resumeData === undefined) return
  const call = await waitingCall(agent, resume)
  if (!call) return
  const { tools } = await resolveToolSet(config, { requestContext: new RequestContext() }, agent.id, agent.threads())
  const checked = await tools.get(call.toolName)?.resume?.validate(resume.resumeData)
  if (!checked || checked.ok) return
  throw new HeedError('invalid_argument', `resumeData does not match the resumeSchema of tool '${call.toolName}': ${describeIssues(checked.issues)}`, {
    details: { field: 'resumeData', issues: checked.issues },
  })
}

async function waitingCall(agent: Askable, { threadId, resourceId, runId, toolCallId }: Resume): Promise<SuspendedCall | undefined> {
  const runtime = agent.threads()
  await runtime.open()
  const scope = threadId === undefined ? undefined : { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  const active = scope && (await runtime.store.getThread(scope))?.runId
  const run = scope && active !== undefined ? await runtime.store.getRun(scope, active) : runId === undefined ? null : await runtime.store.findRun(runId)
  const open = run?.suspended.filter((call) => !call.decision) ?? []
  return toolCallId === undefined ? (open.length === 1 ? open[0] : undefined) : open.find((call) => call.toolCallId === toolCallId)
}

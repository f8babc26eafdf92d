import { HeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import { RequestContext } from '../run/request-context.ts'
import { describeIssues } from '../schema/compile.ts'
import type { RunRow, SuspendedCall } from '../store/contract/threads.ts'
import { foundOptions } from '../thread/send/stored-options.ts'
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
 * agent's own tools are known here, found with what is stored of the run's request context, or with all of it while this process has
 * it; one that came with the call, or can't be found, checks for itself when it runs.
 */
export async function checkResumeData(agent: Askable, config: AgentConfig, resume: Resume): Promise<void> {
  if (resume.resumeData === undefined) return
  const waiting = await waitingCall(agent, resume)
  if (!waiting) return
  const { toolName } = waiting.call
  const checked = await (await ownTool(agent, config, waiting))?.resume?.validate(resume.resumeData)
  if (!checked || checked.ok) return
  throw new HeedError('invalid_argument', `resumeData does not match the resumeSchema of tool '${toolName}': ${describeIssues(checked.issues)}`, {
    details: { field: 'resumeData', issues: checked.issues },
  })
}

interface Waiting {
  run: RunRow
  call: SuspendedCall
}

async function ownTool(agent: Askable, config: AgentConfig, { run, call }: Waiting) {
  const site = agent.site()
  const { options } = foundOptions(run.options, site.threads.waiters.optionsKept(run.runId))
  const { requestContext = new RequestContext() } = options
  try {
    return (await resolveToolSet(config, { requestContext }, agent.id, site)).tools.get(call.toolName)
  } catch (error) {
    site.logger.warn('the tools of an agent could not be found to check resumeData; the run checks it', { agentId: agent.id, error: String(error) })
    return undefined
  }
}

/** The call that is meant. What belongs to another resource is as if it were not there: whoever asks learns nothing of it. */
async function waitingCall(agent: Askable, { threadId, resourceId, runId, toolCallId }: Resume): Promise<Waiting | undefined> {
  const runtime = agent.threads()
  await runtime.open()
  const scope = threadId === undefined ? undefined : { threadId, ...(resourceId === undefined ? {} : { resourceId }) }
  const active = scope && (await runtime.store.getThread(scope))?.runId
  const run = scope && active !== undefined ? await runtime.store.getRun(scope, active) : runId === undefined ? null : await runtime.store.findRun(runId)
  if (!run || (resourceId !== undefined && run.resourceId !== resourceId)) return undefined
  const open = run.suspended.filter((call) => !call.decision)
  const call = toolCallId === undefined ? (open.length === 1 ? open[0] : undefined) : open.find((other) => other.toolCallId === toolCallId)
  return call && { run, call }
}

import { checkName, checkNames, describeValue, refused } from '../base/arguments.ts'
import { isObject } from '../base/json.ts'

/** The fields of requests. Servers ignore others, which clients of other versions send; a misspelt field must not be ignored here. */
export const scopeFields = ['threadId', 'resourceId']
export const decisionFields = ['toolCallId', 'approvalId', 'digest']
const targetFields = ['runId', ...scopeFields, 'ifActive', 'ifIdle']
const messageFields = ['contents', 'id', 'attributes', 'metadata', 'providerOptions', 'createdAt']
const signalFields = [...messageFields, 'type', 'tagName', 'transient']
const stateFields = [
  'id', 'stateId', 'cacheKey', 'contents', 'mode', 'value', 'delta', 'tagName', 'attributes', 'metadata', 'providerOptions', 'signalId',
]
/** The options of a run that can be sent as JSON. */
const runFields = [
  'maxSteps', 'toolChoice', 'activeTools', 'modelSettings', 'providerOptions', 'requestContext', 'instructions', 'system',
  'structuredOutput', 'requireToolApproval', 'clientTools', 'agentVersion',
]

/** The agent and the thread of a page. Without this check, a missing one would be noticed by the first request alone. */
export function checkPage(of: string, given: { agent: unknown; threadId?: unknown; resourceId?: unknown }): void {
  const { agent, threadId, resourceId } = given
  if (!isObject(agent) || typeof agent.sendMessage !== 'function') {
    const wanted = "an agent of a client, such as new HeedClient({ baseUrl }).getAgent('guide')"
    throw refused(`${of}: agent`, `${wanted}, and not ${describeValue(agent)}`)
  }
  if ('threadId' in given) checkName(`${of}: threadId`, threadId)
  if (resourceId !== undefined) checkName(`${of}: resourceId`, resourceId)
}

/** The values of a filter, as a query has them. */
export function listed(field: string, values: readonly string[] | undefined): string | undefined {
  if (values !== undefined && !Array.isArray(values)) throw refused(field, `a list, such as ['${String(values)}']`)
  return values?.join(',')
}

export function checkSend(method: string, send: object, input: 'message' | 'signal' | 'state'): void {
  checkNames(method, send, [input, ...targetFields, ...(input === 'state' ? [] : ['wait'])])
  const { [input]: given, ifActive, ifIdle } = send as Record<string, unknown>
  if (typeof given === 'object' && !Array.isArray(given)) checkNames(input, given, inputFields[input])
  checkBranches({ ifActive, ifIdle })
}

const inputFields = { message: messageFields, signal: signalFields, state: stateFields }

export function checkBranches({ ifActive, ifIdle }: { ifActive?: unknown; ifIdle?: unknown }): void {
  if (ifActive !== undefined) checkNames('ifActive', ifActive, ['behavior', 'attributes'])
  if (ifIdle !== undefined) checkNames('ifIdle', ifIdle, ['behavior', 'attributes', 'streamOptions'])
  checkStreamOptions(ifIdle)
}

/** The options of the run that a send or a notification may start. */
export function checkStreamOptions(ifIdle: unknown): void {
  const { streamOptions } = (ifIdle ?? {}) as { streamOptions?: unknown }
  if (streamOptions !== undefined) checkNames('ifIdle.streamOptions', streamOptions, [...runFields, 'runId', 'memory'])
}

/** The options of a run that change its prompt, and can be sent as JSON. */
const promptFields = ['activeTools', 'requestContext', 'instructions', 'system', 'structuredOutput', 'clientTools', 'agentVersion']

/** The options of `explainPrompt()`. */
export function checkPromptOptions(options: Record<string, unknown>): void {
  checkNames('explainPrompt()', options, [...promptFields, 'memory', ...scopeFields])
}

/** The options of `generate()` and `stream()`. */
export function checkRunOptions(method: string, options: Record<string, unknown>): void {
  checkNames(method, options, [...runFields, 'memory', ...scopeFields, 'runId'])
  const { memory } = options as { memory?: { thread?: unknown; options?: unknown } }
  if (memory === undefined) return
  checkNames('memory', memory, ['thread', 'resource', 'options'])
  if (typeof memory.thread === 'object') checkNames('memory.thread', memory.thread, ['id', 'title', 'metadata'])
  if (memory.options !== undefined) checkNames('memory.options', memory.options, ['lastMessages', 'semanticRecall', 'readOnly', 'save'])
}

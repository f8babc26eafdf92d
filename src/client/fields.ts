import { checkNames } from '../base/arguments.ts'

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
  'structuredOutput', 'requireToolApproval', 'clientTools',
]

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

/** The options of `generate()`, `stream()` and `explainPrompt()`. */
export function checkRunOptions(method: string, options: Record<string, unknown>): void {
  checkNames(method, options, [...runFields, 'memory', ...scopeFields, 'runId'])
  const { memory } = options as { memory?: { thread?: unknown; options?: unknown } }
  if (memory === undefined) return
  checkNames('memory', memory, ['thread', 'resource', 'options'])
  if (typeof memory.thread === 'object') checkNames('memory.thread', memory.thread, ['id', 'title', 'metadata'])
  if (memory.options !== undefined) checkNames('memory.options', memory.options, ['lastMessages', 'semanticRecall', 'readOnly', 'save'])
}

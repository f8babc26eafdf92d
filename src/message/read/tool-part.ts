import { isObject } from '../../base/json.ts'
import type { ModelToolOutput, ToolInvocation, ToolInvocationPart, ToolInvocationState } from '../message.ts'
import { storableOutput } from '../tool-output.ts'
import type { Raw } from './raw.ts'
import { asJSON, firstString, isProviderOptions, providerMetadataOf } from './raw.ts'

type Invocation = Omit<ToolInvocation, 'toolCallId' | 'toolName' | 'args'>

/** A stored call, also in a state of older writers. Undefined for one whose arguments are incomplete. */
export function readStoredInvocation(raw: Raw): ToolInvocationPart | undefined | string {
  const stored = raw.toolInvocation
  if (!isObject(stored)) return 'a tool-invocation part needs `toolInvocation`'
  const names = namesOf(stored, stored.toolName)
  if (typeof names === 'string') return names
  const { toolCallId: _, toolName: __, state, args, isError, ...kept } = stored
  if (state === 'partial-call') return undefined
  const known = invocationState(state, stored)
  const failed = known === 'result' && isError === true
  return {
    type: 'tool-invocation',
    toolInvocation: {
      ...kept,
      ...names,
      args: asJSON(args ?? {}),
      state: failed ? 'output-error' : known,
      ...(failed && { errorText: errorTextOf(stored.errorText ?? stored.result) }),
    },
    ...executedBy(raw),
    ...providerMetadataOf(raw),
    ...(isProviderOptions(raw.resultProviderMetadata) && { resultProviderMetadata: raw.resultProviderMetadata }),
  }
}

/** A call in a model message. */
export function readCall(raw: Raw): ToolInvocationPart | string {
  const names = namesOf(raw, raw.toolName)
  if (typeof names === 'string') return names
  const args = asJSON(raw.input ?? raw.args ?? {})
  return { type: 'tool-invocation', toolInvocation: { ...names, args, state: 'call' }, ...executedBy(raw), ...providerMetadataOf(raw) }
}

/** A result in a model message, without the arguments of its call. */
export function readResult(raw: Raw): ToolInvocationPart | string {
  const names = namesOf(raw, raw.toolName)
  if (typeof names === 'string') return names
  const outcome = isOutput(raw.output) ? outcomeOf(raw.output) : bareOutcome(raw)
  return { type: 'tool-invocation', toolInvocation: { ...names, args: null, ...outcome }, ...providerMetadataOf(raw) }
}

/** A call of a user interface, `tool-<name>` or `dynamic-tool`. Undefined while its input is still streaming. */
export function readInterfaceCall(raw: Raw): ToolInvocationPart | undefined | string {
  const type = firstString(raw.type) ?? ''
  const names = namesOf(raw, type === 'dynamic-tool' ? raw.toolName : type.slice('tool-'.length))
  if (typeof names === 'string') return names
  const invocation = interfaceInvocation(raw)
  if (!invocation) return undefined
  const { callProviderMetadata, resultProviderMetadata } = raw
  return {
    type: 'tool-invocation',
    toolInvocation: { ...names, args: asJSON(raw.input ?? raw.rawInput ?? {}), ...invocation },
    ...executedBy(raw),
    ...(isProviderOptions(callProviderMetadata) && { providerMetadata: callProviderMetadata }),
    ...(isProviderOptions(resultProviderMetadata) && { resultProviderMetadata }),
  }
}

function interfaceInvocation(raw: Raw): Invocation | undefined {
  const approval = isObject(raw.approval) ? { approval: decisionOf(raw.approval) } : {}
  switch (raw.state) {
    case 'input-streaming':
      return undefined
    case 'output-available':
      return { state: 'result', result: asJSON(raw.output), ...approval }
    case 'output-error':
      return { state: 'output-error', errorText: errorTextOf(raw.errorText), ...approval }
    case 'output-denied':
    case 'approval-requested':
      return { state: raw.state, ...approval }
    case 'approval-responded':
      return { state: approval.approval?.approved === false ? 'output-denied' : 'call', ...approval }
    default:
      return { state: 'call' }
  }
}

function invocationState(state: unknown, { approval }: Raw): ToolInvocationState {
  if (state === 'approval-responded') return isObject(approval) && approval.approved === false ? 'output-denied' : 'call'
  return states.find(known => known === state) ?? 'call'
}

const states: readonly ToolInvocationState[] = ['call', 'approval-requested', 'result', 'output-error', 'output-denied']

function decisionOf({ approved, reason }: Raw): { approved?: boolean; reason?: string } {
  return { ...(typeof approved === 'boolean' && { approved }), ...(typeof reason === 'string' && { reason }) }
}

const outputTypes: readonly string[] = ['text', 'json', 'execution-denied', 'error-text', 'error-json', 'content']

function isOutput(output: unknown): output is ModelToolOutput {
  return isObject(output) && typeof output.type === 'string' && outputTypes.includes(output.type)
}

// `modelOutput` is stored only where a prompt from the outcome alone would differ.
function outcomeOf(output: ModelToolOutput): Invocation {
  const exact = 'providerOptions' in output && output.providerOptions ? { modelOutput: asJSON(output) as ModelToolOutput } : {}
  switch (output.type) {
    case 'text':
      return { state: 'result', result: output.value, ...exact }
    case 'json': {
      const result = asJSON(output.value)
      const asText = typeof result === 'string' ? { modelOutput: { type: output.type, value: result } } : {}
      return { state: 'result', result, ...asText, ...exact }
    }
    case 'error-text':
      return { state: 'output-error', errorText: output.value, ...exact }
    case 'error-json':
      return { state: 'output-error', errorText: errorTextOf(output.value), modelOutput: asJSON(output) as ModelToolOutput }
    case 'execution-denied': {
      const reason = output.reason === undefined ? {} : { reason: output.reason }
      return { state: 'output-denied', approval: { approved: false, ...reason }, ...exact }
    }
    case 'content': {
      const stored = storableOutput(output)
      return { state: 'result', result: asJSON('value' in stored ? stored.value : null), modelOutput: stored }
    }
  }
}

function bareOutcome(raw: Raw): Invocation {
  const result = asJSON(raw.result ?? raw.output)
  return raw.isError === true ? { state: 'output-error', errorText: errorTextOf(result) } : { state: 'result', result }
}

function errorTextOf(error: unknown): string {
  if (typeof error === 'string') return error
  if (isObject(error) && typeof error.message === 'string') return error.message
  return JSON.stringify(asJSON(error))
}

function executedBy({ providerExecuted }: Raw): { providerExecuted?: true } {
  return providerExecuted === true ? { providerExecuted } : {}
}

function namesOf({ toolCallId }: Raw, toolName: unknown): { toolCallId: string; toolName: string } | string {
  if (typeof toolCallId !== 'string' || toolCallId === '') return 'a tool part needs a `toolCallId`'
  if (typeof toolName !== 'string' || toolName === '') return 'a tool part needs a `toolName`'
  return { toolCallId, toolName }
}

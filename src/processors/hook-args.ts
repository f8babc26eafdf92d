import type { HeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import type { Message, ToolInvocation } from '../message/message.ts'
import type { Chunk } from '../message/chunk.ts'
import type { SystemMessage } from '../prompt/system.ts'
import type { Run } from '../run/loop/run.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import type { HookCall } from './hook-call.ts'
import type { HookMessages } from './hook-messages.ts'
import type {
  InputSource, ProcessAPIErrorArgs, ProcessInputArgs, ProcessInputStepArgs, ProcessOutputResultArgs, ProcessOutputStepArgs,
  ProcessOutputStreamArgs, ProcessorContext, ProcessToolResultArgs,
} from './processor.ts'
import type { StepChange } from './hook-results.ts'

/*
 * The arguments of hooks. Each call of a hook gets an object of its own, so the cost of creating one is most of the cost of a processor.
 * Each literal is written out and has one shape: a shared class for the common fields would be compiled for eight shapes.
 */

/** The arguments that every hook receives. */
export function contextFor(run: Run, call: HookCall): ProcessorContext {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext,
    logger: run.logger, retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort,
    sendSignal: call.sendSignal,
  }
}

export function inputArgs(
  run: Run, call: HookCall, part: HookMessages, systemMessages: SystemMessage[], source: InputSource,
): ProcessInputArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext,
    logger: run.logger, retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort,
    sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, systemMessages, source,
  }
}

/** `before`: the changes that the processors before this one returned. `given`: the options of the step, with changes in place. */
export function inputStepArgs(
  run: Run, call: HookCall, part: HookMessages, before: StepChange, given: StepChange, model: ProcessInputStepArgs['model'],
): ProcessInputStepArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext,
    logger: run.logger, retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort,
    sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, stepNumber: run.step, steps: run.shownSteps,
    // A change in the list would also apply to the later steps.
    tools: run.tools.definitions.map((definition) => ({ ...definition })),
    systemMessages: before.systemMessages ?? given.systemMessages ?? [],
    model: before.model ?? model,
    toolChoice: before.toolChoice,
    activeTools: before.activeTools ?? given.activeTools,
    modelSettings: before.modelSettings ?? given.modelSettings ?? {},
    providerOptions: before.providerOptions ?? given.providerOptions,
  }
}

export function outputStreamArgs(
  run: Run, call: HookCall, part: Chunk, streamParts: readonly Chunk[], emit: ProcessOutputStreamArgs['emit'],
): ProcessOutputStreamArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext,
    logger: run.logger, retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort,
    sendSignal: call.sendSignal,
    part, streamParts, emit,
  }
}

export function outputStepArgs(run: Run, call: HookCall, part: HookMessages, output: StepRecorder): ProcessOutputStepArgs {
  const { messages } = part
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext,
    logger: run.logger, retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort,
    sendSignal: call.sendSignal,
    messages, messageList: part.list, stepNumber: run.step, steps: run.shownSteps,
    text: output.text, toolCalls: callsIn(messages, output), finishReason: output.finishReason, usage: output.usage,
  }
}

/** The calls of the step as its message has them: a change of a call in place is a change of the message. */
function callsIn(messages: readonly Message[], { calls }: StepRecorder): ToolInvocation[] {
  const found: ToolInvocation[] = []
  if (calls.length === 0) return found
  const parts = messages.at(-1)?.content.parts ?? []
  for (const { part: { toolInvocation: { toolCallId } } } of calls) {
    const part = parts.findLast((one) => one.type === 'tool-invocation' && one.toolInvocation.toolCallId === toolCallId)
    if (part?.type === 'tool-invocation') found.push(part.toolInvocation)
  }
  return found
}

export function toolResultArgs(
  run: Run, call: HookCall, { toolName, toolCallId, args }: ToolInvocation, result: JSONValue, isError: boolean, preliminary: boolean,
): ProcessToolResultArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext,
    logger: run.logger, retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort,
    sendSignal: call.sendSignal,
    stepNumber: run.step, toolName, toolCallId, args, result, isError, preliminary,
  }
}

export function outputResultArgs(
  run: Run, call: HookCall, part: HookMessages, result: ProcessOutputResultArgs['result'],
): ProcessOutputResultArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext,
    logger: run.logger, retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort,
    sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, result,
  }
}

export function apiErrorArgs(run: Run, call: HookCall, part: HookMessages, error: HeedError): ProcessAPIErrorArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext,
    logger: run.logger, retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort,
    sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, error, stepNumber: run.step,
  }
}

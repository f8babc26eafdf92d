import type { HeedError } from '../base/errors.ts'
import type { JSONValue } from '../base/json.ts'
import type { ToolInvocation } from '../message/message.ts'
import type { Chunk } from '../run/chunk.ts'
import type { Run } from '../run/loop/run.ts'
import type { StepRecorder } from '../run/step/step-recorder.ts'
import type { HookCall } from './hook-call.ts'
import type { PartOfRun } from './part-of-run.ts'
import type {
  ProcessAPIErrorArgs, ProcessInputArgs, ProcessInputStepArgs, ProcessOutputResultArgs, ProcessOutputStepArgs, ProcessOutputStreamArgs, ProcessorContext,
  ProcessToolResultArgs,
} from './processor.ts'
import type { StepChange } from './step-change.ts'

/*
 * What hooks are given. Every processor gets an object of its own at every place, so that what one of these costs is what a processor costs. Each is
 * written out and so has one shape: a class for what they have in common would be compiled for eight.
 */

/** What every hook is given. */
export function contextFor(run: Run, call: HookCall): ProcessorContext {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext, logger: run.logger,
    retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort, sendSignal: call.sendSignal,
  }
}

export function inputArgs(run: Run, call: HookCall, part: PartOfRun): ProcessInputArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext, logger: run.logger,
    retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort, sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, systemMessages: run.system,
  }
}

/** `before`: what the processors before it have changed. */
export function inputStepArgs(run: Run, call: HookCall, part: PartOfRun, before: StepChange, model: ProcessInputStepArgs['model']): ProcessInputStepArgs {
  const { options } = run
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext, logger: run.logger,
    retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort, sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, stepNumber: run.step, steps: run.steps, tools: run.tools.definitions,
    systemMessages: before.systemMessages ?? run.system,
    model: before.model ?? model,
    toolChoice: before.toolChoice,
    activeTools: before.activeTools ?? options.activeTools,
    modelSettings: before.modelSettings ?? options.modelSettings ?? {},
    providerOptions: before.providerOptions ?? options.providerOptions,
  }
}

export function outputStreamArgs(
  run: Run, call: HookCall, part: Chunk, streamParts: readonly Chunk[], emit: ProcessOutputStreamArgs['emit'],
): ProcessOutputStreamArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext, logger: run.logger,
    retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort, sendSignal: call.sendSignal,
    part, streamParts, emit,
  }
}

export function outputStepArgs(
  run: Run, call: HookCall, part: PartOfRun, said: StepRecorder, toolCalls: ProcessOutputStepArgs['toolCalls'],
): ProcessOutputStepArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext, logger: run.logger,
    retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort, sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, stepNumber: run.step, steps: run.steps,
    text: said.text, toolCalls, finishReason: said.finishReason, usage: said.usage,
  }
}

export function toolResultArgs(
  run: Run, call: HookCall, { toolName, toolCallId, args }: ToolInvocation, result: JSONValue, isError: boolean, preliminary: boolean,
): ProcessToolResultArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext, logger: run.logger,
    retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort, sendSignal: call.sendSignal,
    stepNumber: run.step, toolName, toolCallId, args, result, isError, preliminary,
  }
}

export function outputResultArgs(run: Run, call: HookCall, part: PartOfRun, result: ProcessOutputResultArgs['result']): ProcessOutputResultArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext, logger: run.logger,
    retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort, sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, result,
  }
}

export function apiErrorArgs(run: Run, call: HookCall, part: PartOfRun, error: HeedError): ProcessAPIErrorArgs {
  return {
    agent: run.agent, runId: run.id, threadId: run.threadId, resourceId: run.resourceId, requestContext: run.requestContext, logger: run.logger,
    retryCount: run.retries, abortSignal: call.signal, state: call.state, abort: call.abort, sendSignal: call.sendSignal,
    messages: part.messages, messageList: part.list, error, stepNumber: run.step,
  }
}

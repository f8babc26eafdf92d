import type { LanguageModelV4FunctionTool, LanguageModelV4ToolChoice } from '@ai-sdk/provider'
import type { Clock } from '../base/clock.ts'
import { HeedError } from '../base/errors.ts'
import { untilAborted } from '../base/promises.ts'
import { callModel, type ModelStream } from '../run/model/model-call.ts'
import { toV4Part } from '../run/model/model-parts.ts'
import { defaultMaxRetries, resolveModels, type ModelConfig } from '../run/model/model.ts'
import { StepRecorder } from '../run/step/step-recorder.ts'
import { traceChat } from '../tracing/chat-trace.ts'
import type { TracingOptions } from '../tracing/options.ts'
import { parseResult } from './result-json.ts'

/** One question to a model: instructions, and material that others wrote. */
export interface Question {
  /** For traces. */
  purpose: 'annotate' | 'judge'
  /** The thread or the channel that it is about, for traces. */
  conversation: string
  system: string
  material: string
  tools: LanguageModelV4FunctionTool[]
  toolChoice: LanguageModelV4ToolChoice
}

/** A call that the model wrote. Its input is the text as the model wrote it. */
export interface WrittenCall {
  toolName: string
  input: string
}

interface AskedModel {
  model: ModelConfig
  /** Who asks, for errors. */
  asker: string
  clock: Clock
  tracing?: TracingOptions | false | undefined
  timeoutMs: number
  maxOutputTokens: number
}

/** The most calls that are read of an answer. */
const maxCalls = 8

/** How an answer ends that its model had not finished. Without a call it says nothing: it is no decision against the message. */
const unfinished: readonly string[] = ['length', 'content-filter', 'error']

/**
 * Asks a model once, in a context that has nothing but the question. The calls that it writes are returned and not executed: no tool has
 * code here, whatever the model calls.
 */
export async function askModel(asked: AskedModel, question: Question, closing: AbortSignal): Promise<WrittenCall[]> {
  const { purpose, conversation, system, material, tools, toolChoice } = question
  const { model, asker, clock, tracing, timeoutMs, maxOutputTokens } = asked
  const timeout = new AbortController()
  const late = new HeedError('stream_broken', `The model did not answer within ${timeoutMs} ms.`)
  const timer = clock.after(timeoutMs, () => timeout.abort(late))
  const signal = AbortSignal.any([closing, timeout.signal])
  const trace = traceChat(tracing, { conversation, purpose })
  try {
    const answer = await callModel(
      await untilAborted(resolveModels(model, asker), signal),
      {
        prompt: [
          { role: 'system', content: system },
          { role: 'user', content: [{ type: 'text', text: material }] },
        ],
        tools,
        toolChoice,
        maxOutputTokens,
        abortSignal: signal,
      },
      { clock, signal, maxRetries: defaultMaxRetries, ...(trace ? { trace } : {}) },
    )
    return await readCalls(answer, signal)
  } finally {
    timer.cancel()
  }
}

async function readCalls(answer: ModelStream, signal: AbortSignal): Promise<WrittenCall[]> {
  const recorder = new StepRecorder('')
  const calls: WrittenCall[] = []
  let finish = ''
  let failure: unknown
  try {
    while (calls.length < maxCalls) {
      const { done, value } = await answer.next()
      if (done) break
      const part = toV4Part(value)
      if (part.type === 'error') throw new HeedError('stream_broken', 'The answer of the model ended with an error.', { cause: part.error })
      if (part.type === 'finish') finish = part.finishReason.unified
      if (part.type === 'tool-call') calls.push({ toolName: part.toolName, input: part.input })
      const chunk = recorder.take(part)
      if (chunk) recorder.keep(chunk, chunk)
    }
    signal.throwIfAborted()
    if (unfinished.includes(finish) && !calls.some(({ input }) => parseResult(input).ok))
      throw new HeedError('structured_output_invalid', `The model ended its answer without a call: ${finish}.`)
    return calls
  } catch (error) {
    failure = error
    throw error
  } finally {
    answer.close()
    answer.chat?.end(recorder, signal.aborted ? { cut: 'aborted' } : { error: failure })
  }
}

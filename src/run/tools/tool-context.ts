import { HeedError, isHeedError } from '../../base/errors.ts'
import type { ToolInvocation } from '../../message/message.ts'
import { threadData } from '../../processors/chunk-shapes.ts'
import { TripwireAbort } from '../../processors/tripwire.ts'
import type { Chunk } from '../chunk.ts'
import { addUsage } from '../model/model-parts.ts'
import { nest, type Nesting } from './nesting.ts'
import type { Run } from '../loop/run.ts'
import type { WaitingCall } from '../output/run-result.ts'
import type { CallScope, Decision } from './tool-run.ts'
import type { ToolContext } from './tool.ts'
import { jsonOf } from './tool-json.ts'

/** One execution of a tool as the tool sees it, and what it asked for. When it is over, the tool has no voice any more. */
export class ToolExecution {
  /** What the tool suspended with, when it did. */
  suspended: Pick<WaitingCall, 'kind' | 'payload' | 'child'> | undefined
  readonly #run: Run
  readonly #scope: CallScope
  readonly #invocation: ToolInvocation
  readonly #decision: Decision | undefined
  #over = false

  constructor(run: Run, scope: CallScope, invocation: ToolInvocation, decision?: Decision) {
    this.#run = run
    this.#scope = scope
    this.#invocation = invocation
    this.#decision = decision
  }

  end(): void {
    this.#over = true
  }

  context(abortSignal: AbortSignal, resumeData: unknown): ToolContext {
    const { id: runId, agent, threadId, resourceId, requestContext } = this.#run
    const { toolCallId, toolName } = this.#invocation
    const sent = this.#run.sentMessages()
    const context: ToolContext = {
      toolCallId,
      toolName,
      runId,
      agentId: agent.id,
      ...(threadId === undefined ? {} : { threadId }),
      ...(resourceId === undefined ? {} : { resourceId }),
      abortSignal,
      requestContext,
      get messages() {
        return sent()
      },
      suspend: (payload) => this.#suspend(payload),
      ...(resumeData === undefined ? {} : { resumeData }),
      write: (part) => {
        // Any other type would pass for something that the run itself said.
        if (typeof part.type !== 'string' || !part.type.startsWith('data-')) {
          throw new HeedError('invalid_argument', `${toolName} wrote a part of type '${String(part.type)}'. Types that a tool writes begin with 'data-'.`)
        }
        if (threadData.has(part.type)) throw new HeedError('invalid_argument', `${toolName} wrote a part of type '${part.type}', which is the thread's to say. Choose another type, or send a signal with sendSignal().`)
        this.#say({ ...part, runId })
      },
      report: (output) => this.#say(this.#run.chunk('tool-output', { toolCallId, toolName, output })),
      sendSignal: async (signal) => {
        if (this.#over) throw new HeedError('no_active_run', `${toolName} is over: it can't send a signal any more.`)
        await this.#run.sendSignal(signal).catch((error: unknown) => {
          if (isRefusal(this.#run, error)) this.#scope.fail(error)
          throw error
        })
      },
    }
    return nest(context, this.#nesting())
  }

  #nesting(): Nesting {
    const { child, ...decision } = this.#decision ?? {}
    return {
      step: this.#run.step,
      decision: child && { ...decision, child },
      isLeft: () => this.#run.isLost(this.#scope.signal.reason),
      wait: (wait) => this.#wait(wait),
      spend: (usage) => {
        this.#run.usage = addUsage(this.#run.usage, usage)
      },
    }
  }

  #suspend(payload: unknown): never {
    return this.#wait({ kind: 'suspend', payload: jsonOf(payload, `What ${this.#invocation.toolName} suspended with`) })
  }

  #wait(wait: Pick<WaitingCall, 'kind' | 'payload' | 'child'>): never {
    const { toolName } = this.#invocation
    this.suspended = wait
    throw new HeedError('tool_interrupted', `${toolName} suspended itself.`)
  }

  #say(chunk: Chunk): void {
    if (this.#over) return
    const said = this.#run.say(chunk)
    // The tool does not wait for what processors think of it, but the run does.
    if (said instanceof Promise) said.catch(this.#scope.fail)
  }
}

/** True for what ends the run, whoever's code it passes through: a processor's refusal or failure. */
function isRefusal(run: Run, error: unknown): boolean {
  return error instanceof TripwireAbort || run.isLost(error) || (isHeedError(error) && error.code === 'processor_failed')
}

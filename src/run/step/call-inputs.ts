import type { LanguageModelV4StreamPart } from '@ai-sdk/provider'
import { describe } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import type { Run } from '../loop/run.ts'
import type { InputContext } from '../tools/tool.ts'

/** Tells tools that want to know of the calls that a model is writing. What they do wrong is logged and is not the run's failure. */
export class CallInputs {
  readonly #names = new Map<string, string>()
  readonly #run: Run

  constructor(run: Run) {
    this.#run = run
  }

  async hear(part: LanguageModelV4StreamPart): Promise<void> {
    switch (part.type) {
      case 'tool-input-start': {
        this.#names.set(part.id, part.toolName)
        const tool = this.#run.offered.get(part.toolName)?.tool
        return tool?.onInputStart && this.#tell(part.toolName, () => tool.onInputStart?.(this.#context(part.id)))
      }
      case 'tool-input-delta': {
        const name = this.#names.get(part.id) ?? ''
        const tool = this.#run.offered.get(name)?.tool
        return tool?.onInputDelta && this.#tell(name, () => tool.onInputDelta?.({ ...this.#context(part.id), inputTextDelta: part.delta }))
      }
      case 'tool-call': {
        this.#names.delete(part.toolCallId)
        const resolved = this.#run.offered.get(part.toolName)
        if (!resolved?.tool.onInputAvailable) return
        return this.#tell(part.toolName, async () => {
          const input = parsed(part.input)
          const checked = input === undefined ? undefined : ((await resolved.input?.validate(input)) ?? { ok: true as const, value: input })
          // A call that can't be made goes back to the model.
          if (checked?.ok) await resolved.tool.onInputAvailable?.({ ...this.#context(part.toolCallId), input: checked.value })
        })
      }
    }
  }

  async #tell(toolName: string, told: () => void | Promise<void>): Promise<void> {
    const { signal, logger, id: runId } = this.#run
    try {
      await this.#run.unlessAborted(told())
    } catch (error) {
      if (!signal.aborted) logger.error(`tool '${toolName}' failed while it was told of its input`, { runId, error: describe(error) })
    }
  }

  #context(toolCallId: string): InputContext {
    const { signal: abortSignal, requestContext } = this.#run
    return { toolCallId, abortSignal, requestContext, messages: this.#run.sentMessages(true)() }
  }
}

function parsed(text: string): JSONValue | undefined {
  try {
    return text.trim() === '' ? {} : (JSON.parse(text) as JSONValue)
  } catch {
    // Malformed JSON is answered where the call is made.
    return undefined
  }
}

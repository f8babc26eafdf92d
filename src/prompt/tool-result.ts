import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider'
import type { JSONValue } from '../base/json.ts'
import type { ModelToolOutput, ProviderOptions, ToolInvocation } from '../message/message.ts'

/** The outcome of a call as a model receives it. */
export function toolResult(invocation: ToolInvocation, options: ProviderOptions | undefined): LanguageModelV4ToolResultPart {
  const { toolCallId, toolName } = invocation
  const part: LanguageModelV4ToolResultPart = { type: 'tool-result', toolCallId, toolName, output: outputOf(invocation) }
  if (options) part.providerOptions = options
  return part
}

function outputOf({ state, result, errorText, approval, modelOutput }: ToolInvocation): ModelToolOutput {
  if (modelOutput) return revived(modelOutput)
  switch (state) {
    case 'output-error':
      return { type: 'error-text', value: errorText ?? 'The tool failed.' }
    case 'output-denied':
      return { type: 'execution-denied', ...(approval?.reason !== undefined && { reason: approval.reason }) }
    default:
      return typeof result === 'string' ? { type: 'text', value: result } : { type: 'json', value: (result ?? null) as JSONValue }
  }
}

/** A row keeps URLs as text; a provider wants them as URLs. */
function revived(output: ModelToolOutput): ModelToolOutput {
  if (output.type !== 'content' || !output.value.some(hasURLText)) return output
  const value = output.value.map(item => {
    if (item.type !== 'file' || item.data.type !== 'url' || !hasURLText(item)) return item
    return { ...item, data: { ...item.data, url: new URL(item.data.url) } }
  })
  return { ...output, value }
}

type OutputItem = Extract<ModelToolOutput, { type: 'content' }>['value'][number]

function hasURLText(item: OutputItem): boolean {
  return item.type === 'file' && item.data.type === 'url' && typeof item.data.url === 'string' && URL.canParse(item.data.url)
}

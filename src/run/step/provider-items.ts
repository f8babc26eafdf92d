import type { MessagePart, ProviderOptions, ReasoningPart, TextPart, ToolInvocationPart } from '../../message/message.ts'

/**
 * The parts of a step that was cut or changed, without the provider's item ids. Some providers store the output of a model as items,
 * and later prompts have the id of an item instead of its text: an id would bring back what was changed, or name an item that was
 * never finished. `reasoningChanged`: a signature over the reasoning is void.
 */
export function withoutItems(parts: readonly MessagePart[], reasoningChanged: boolean): MessagePart[] {
  const hasItems = parts.some((part) =>
    hasItem(part.providerMetadata) || ('resultProviderMetadata' in part && hasItem(part.resultProviderMetadata)))
  return parts.flatMap((part): MessagePart[] => {
    if (part.type === 'text') return [withoutMetadata(part)]
    // Reasoning without its item stays for transcripts only: providers reject reasoning that its output does not follow.
    if (part.type === 'reasoning') return [hasItems || reasoningChanged ? withoutMetadata(part) : part]
    if (part.type !== 'tool-invocation' || !hasItems) return [part]
    // A call that the provider executed can only be sent as its item.
    return part.providerExecuted ? [] : [callWithoutItem(part)]
  })
}

function hasItem(metadata: ProviderOptions | undefined): boolean {
  return metadata !== undefined && Object.values(metadata).some((options) => options?.itemId !== undefined)
}

function withoutMetadata<Part extends TextPart | ReasoningPart>(part: Part): Part {
  if (part.providerMetadata === undefined) return part
  const { providerMetadata: _, ...rest } = part
  return rest as Part
}

function callWithoutItem(part: ToolInvocationPart): ToolInvocationPart {
  if (!hasItem(part.providerMetadata)) return part
  const { providerMetadata = {}, ...rest } = part
  const left = Object.entries(providerMetadata).flatMap(([provider, { itemId: _, ...options }]) =>
    Object.keys(options).length === 0 ? [] : [[provider, options] as const])
  return left.length === 0 ? rest : { ...rest, providerMetadata: Object.fromEntries(left) }
}

import type { MessagePart, ProviderOptions, ReasoningPart, TextPart, ToolInvocationPart } from '../../message/message.ts'

/**
 * The parts of a step that is not, or no longer, what its provider remembers of it: cut short, or changed. Some providers keep what a
 * model said as items, and are then sent an item's id in place of its words; an id here would bring back what was changed, or name
 * what was never finished. `thoughts`: they were changed too, so that a signature over them is void.
 */
export function withoutItems(parts: readonly MessagePart[], thoughts: boolean): MessagePart[] {
  const bound = parts.some((part) => hasItem(part.providerMetadata) || ('resultProviderMetadata' in part && hasItem(part.resultProviderMetadata)))
  return parts.flatMap((part): MessagePart[] => {
    if (part.type === 'text') return [plain(part)]
    // Without its item a thought is for transcripts alone: a thought that is not followed by what it led to is refused.
    if (part.type === 'reasoning') return [bound || thoughts ? plain(part) : part]
    if (part.type !== 'tool-invocation' || !bound) return [part]
    // What the provider did itself can only be told by its items.
    return part.providerExecuted ? [] : [callWithoutItem(part)]
  })
}

function hasItem(metadata: ProviderOptions | undefined): boolean {
  return metadata !== undefined && Object.values(metadata).some((options) => options?.itemId !== undefined)
}

function plain<Part extends TextPart | ReasoningPart>(part: Part): Part {
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

import type { AgentClient } from 'heed/client'

export type StepPrompt = Awaited<ReturnType<AgentClient['getStepPrompt']>>
export type PromptPart = StepPrompt['parts'][number]

/** The value of a part: a tool, or a message of the prompt. */
export function valueOf({ prompt, tools }: Pick<StepPrompt, 'prompt' | 'tools'>, { source, index }: PromptPart): unknown {
  return source === 'tools' ? tools[index] : prompt[index]
}

/** The texts of a message, without the JSON around them. Undefined where it has other parts than text. */
export function textOf(value: unknown): string | undefined {
  const { content } = Object(value) as { content?: unknown }
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return undefined
  const texts = content.map((part) => Object(part) as { type?: string; text?: string })
  return texts.every(({ type, text }) => (type === 'text' || type === 'reasoning') && typeof text === 'string')
    ? texts.map(({ text }) => text).join('\n')
    : undefined
}

/** How many bytes of a prompt the call before had at its beginning, how many came at the end, and how many after a change. */
export function sharesOf({ bytes, prefix, brokenAt }: Pick<StepPrompt, 'bytes' | 'prefix' | 'brokenAt'>) {
  const kept = Math.min(bytes, prefix.bytes)
  const rest = bytes - kept
  return { kept, added: brokenAt === undefined ? rest : 0, changed: brokenAt === undefined ? 0 : rest }
}

/** The number of characters at the beginning of two texts that are equal. */
export function commonLength(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  let at = 0
  while (at < length && one[at] === other[at]) at += 1
  return at
}

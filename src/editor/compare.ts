import type { AgentOverrides, PromptBlock, ToolOverride } from './contract.ts'

/** A field that differs. `null`: as in code. */
export interface EditDifference {
  /** `instructions`, or `tools.` and the name of a tool. */
  field: string
  from: EditedValue | null
  to: EditedValue | null
}

type EditedValue = NonNullable<AgentOverrides['instructions']> | ToolOverride

/** What differs between two versions, field by field. */
export function compareOverrides(from: AgentOverrides, to: AgentOverrides): EditDifference[] {
  const names = [...new Set([...Object.keys(from.tools ?? {}), ...Object.keys(to.tools ?? {})])].toSorted()
  const fields: EditDifference[] = [
    { field: 'instructions', from: from.instructions ?? null, to: to.instructions ?? null },
    ...names.map((name) => ({ field: `tools.${name}`, from: overrideOf(from, name), to: overrideOf(to, name) })),
  ]
  return fields.filter((field) => JSON.stringify(field.from) !== JSON.stringify(field.to))
}

function overrideOf({ tools = {} }: AgentOverrides, name: string): ToolOverride | null {
  return Object.hasOwn(tools, name) ? (tools[name] ?? null) : null
}

/** A field of a prompt block that differs. `null`: it has none. */
export interface PromptBlockDifference {
  field: keyof PromptBlock
  from: NonNullable<PromptBlock[keyof PromptBlock]> | null
  to: NonNullable<PromptBlock[keyof PromptBlock]> | null
}

export function comparePromptBlocks(from: PromptBlock, to: PromptBlock): PromptBlockDifference[] {
  const fields = (['content', 'rules', 'description'] as const).map((field) => (
    { field, from: from[field] ?? null, to: to[field] ?? null }
  ))
  return fields.filter((field) => JSON.stringify(field.from) !== JSON.stringify(field.to))
}

import { isHeedError, type ContextRules, type EditorClient, type InstructionBlock, type RemoteEditableAgent } from 'heed/client'

export type Described = RemoteEditableAgent
export type Version = Awaited<ReturnType<EditorClient['getVersion']>>
export type Release = Awaited<ReturnType<EditorClient['publish']>>
export type Rule = NonNullable<Release['rules']>[number]
export type Overrides = Version['overrides']
export type ToolOverride = NonNullable<Overrides['tools']>[string]

/** The instructions of runs with these overrides. */
export function instructionsOf({ code }: Described, overrides: Overrides): string | InstructionBlock[] {
  const { instructions } = overrides
  if (instructions === undefined) return code.instructions.join('\n\n')
  return typeof instructions === 'string' ? instructions : [...instructions]
}

/** Instructions as a text to read and to compare: each block with what it is. */
export function instructionText(instructions: string | readonly InstructionBlock[]): string {
  if (typeof instructions === 'string') return instructions
  return instructions
    .map((block) => {
      if (block.type === 'prompt_block_ref') return `[prompt block ${block.id}]`
      const rules = block.type === 'prompt_block' && block.rules ? `[for requests with ${JSON.stringify(block.rules)}]\n` : ''
      return `${rules}${block.content}`
    })
    .join('\n\n')
}

/** Rules as they are typed; none where nothing is typed. What they may say, the server checks. */
export function rulesOf(text: string): { rules?: ContextRules; problem?: string } {
  if (text.trim() === '') return {}
  try {
    return { rules: JSON.parse(text) as ContextRules }
  } catch {
    return { problem: 'This is no JSON yet. It is not saved.' }
  }
}

/** Overrides of a tool for some requests. They are kept as they are until the tool is edited. */
type ToolVariants = Extract<ToolOverride, readonly unknown[]>

/** A draft as it is edited: every field has a value, and those that are as in code are left out of what is saved. */
export interface Draft {
  instructions: string | InstructionBlock[]
  /** By name: whether the agent has the tool, and what the model reads of it. */
  tools: Record<string, { isIn: boolean; description: string; variants?: ToolVariants }>
}

export function draftOf(described: Described, overrides: Overrides): Draft {
  const tools = described.code.tools.map(({ name, description }) => {
    const override = overrides.tools?.[name]
    if (isVariants(override)) return [name, { isIn: true, description, variants: override }] as const
    return [name, { isIn: override !== false, description: override ? override.description : description }] as const
  })
  return { instructions: instructionsOf(described, overrides), tools: Object.fromEntries(tools) }
}

/** What is saved of a draft: what differs from code. Overrides of tools that code no longer offers are kept. */
export function overridesOf(described: Described, draft: Draft, base: Overrides): Overrides {
  const { code } = described
  const kept = Object.entries(base.tools ?? {}).filter(([name]) => !code.tools.some((tool) => tool.name === name))
  const changed = code.tools.flatMap<[string, ToolOverride]>(({ name, description }) => {
    const tool = draft.tools[name]
    if (!tool) return []
    if (tool.variants) return [[name, tool.variants]]
    if (!tool.isIn) return [[name, false]]
    return tool.description === description ? [] : [[name, { description: tool.description }]]
  })
  const tools = Object.fromEntries([...kept, ...changed])
  return {
    ...(draft.instructions === code.instructions.join('\n\n') ? {} : { instructions: draft.instructions }),
    ...(Object.keys(tools).length === 0 ? {} : { tools }),
  }
}

/** A field in two versions, as texts. */
export interface FieldChange {
  field: string
  from: string
  to: string
}

/** What differs between two sets of overrides, in the words that a model reads. */
export function changesOf(described: Described, from: Overrides, to: Overrides): FieldChange[] {
  const names = new Set([...described.code.tools.map(({ name }) => name), ...Object.keys(from.tools ?? {}), ...Object.keys(to.tools ?? {})])
  const fields = [
    {
      field: 'instructions',
      from: instructionText(instructionsOf(described, from)),
      to: instructionText(instructionsOf(described, to)),
    },
    ...[...names].map((name) => ({ field: `tool ${name}`, from: toolText(described, from, name), to: toolText(described, to, name) })),
  ]
  return fields.filter((one) => one.from !== one.to)
}

function toolText({ code }: Described, overrides: Overrides, name: string): string {
  const override = overrides.tools?.[name]
  if (override === false) return '(taken out)'
  if (isVariants(override)) return override.map(({ rules, override: one }) => `${JSON.stringify(rules)}: ${plainText(one)}`).join('\n')
  const offered = code.tools.find((tool) => tool.name === name)
  return override?.description ?? offered?.description ?? '(not offered by code)'
}

function plainText(override: false | { description: string }): string {
  return override === false ? '(taken out)' : override.description
}

function isVariants(override: ToolOverride | undefined): override is ToolVariants {
  return Array.isArray(override)
}

/** What the newest release says about a version. */
export function stateOf(version: number, { release, latest }: Described): 'published' | 'for some runs' | 'draft' | 'earlier' {
  if ((release?.version ?? 0) === version) return 'published'
  if (release?.rules?.some((rule) => rule.version === version)) return 'for some runs'
  return version > 0 && version === latest?.version ? 'draft' : 'earlier'
}

/** A rule in words. */
export function ruleText({ resources, context, percent }: Rule): string {
  const parts = [
    resources && `resources ${resources.join(', ')}`,
    ...Object.entries(context ?? {}).map(([key, values]) => `${key} is ${values.map(String).join(' or ')}`),
    percent !== undefined && `${percent} % of resources`,
  ]
  return parts.filter((part) => typeof part === 'string').join(', and ')
}

/** Who stored something in between, where an error says so. */
export function conflictOf(error: unknown): { latest: number; by?: string; at?: number; why?: string } | undefined {
  if (!isHeedError(error) || error.code !== 'edit_conflict') return undefined
  return error.details as { latest: number; by?: string; at?: number; why?: string }
}

/** Instructions in blocks: a text is one of them. */
export function blocksOf(instructions: string | InstructionBlock[]): InstructionBlock[] {
  return typeof instructions === 'string' ? [{ type: 'text', content: instructions }] : instructions
}

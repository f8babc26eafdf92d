import { checkNames, checkObject, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import { checkContextRules } from './context-rules.ts'
import type { AgentOverrides, Editable, PlainToolOverride, ToolOverride, ToolVariant } from './contract.ts'
import { checkInstructions, checkPlainText, inherited } from './instructions.ts'

const maxDescription = 4_096
const maxTools = 256
/** Of one tool. */
const maxVariants = 16

/** Fields of an agent that always come from code. They are left out of what is saved. */
const ownedByCode = [
  'id', 'name', 'model', 'description', 'metadata', 'memory', 'agents', 'workflows', 'inputProcessors', 'outputProcessors',
]
const toolName = /^[A-Za-z0-9_-]{1,128}$/

/** Overrides that may be stored, and the names of the fields that code owns and that were left out. */
export interface CheckedOverrides {
  overrides: AgentOverrides
  stripped: string[]
}

/** What an editor knows of the code of an agent. */
export interface EditedCode {
  agentId: string
  editable: Editable
  /** The tools that code offers, by name: whether they have a description of their own, or one of the provider. */
  tools: ReadonlyMap<string, boolean>
  /** Tags that the agent reserves for its own signals. */
  tags: readonly string[]
  /** The keys that it declares in `requestContextSchema`: what templates may read. */
  keys: readonly string[]
}

/**
 * Checks what is to be saved. Fields that code owns are left out and named; everything else that is not an override of a tool that code
 * offers, or not a text that may stand in a prompt, is refused.
 */
export function checkOverrides(given: unknown, code: EditedCode): CheckedOverrides {
  checkObject('overrides', given)
  checkNames('overrides', given, ['instructions', 'tools', ...ownedByCode])
  const { editable } = code
  const stripped = ownedByCode.filter((name) => given[name] !== undefined)
  const overrides: AgentOverrides = {}
  const { instructions, tools } = given
  if (instructions !== undefined) {
    if (editable.instructions) overrides.instructions = checkInstructions(instructions, code)
    else stripped.push('instructions')
  }
  if (tools !== undefined) {
    const checked = checkTools(tools, code, stripped)
    if (Object.keys(checked).length > 0) overrides.tools = checked
  }
  if (stripped.length > 0 && Object.keys(overrides).length === 0) throw locked(code.agentId, stripped)
  return { overrides, stripped }
}

function checkTools(given: unknown, code: EditedCode, stripped: string[]): Record<string, ToolOverride> {
  checkObject('tools', given)
  const entries = Object.entries(given).filter(([, value]) => value !== undefined)
  if (entries.length > maxTools) throw refused('tools', `an object with at most ${maxTools} tools`)
  const checked: Array<[string, ToolOverride]> = []
  for (const [name, override] of entries) {
    if (!toolName.test(name) || inherited.has(name)) {
      throw refused('tools', `an object by the names of tools, not by ${JSON.stringify(name.slice(0, 64))}`)
    }
    if (!code.tools.has(name)) throw unknownTool(name, code)
    const field = `tools.${name}`
    const found = Array.isArray(override) ? checkVariants(field, name, override, code) : checkTool(field, name, override, code)
    if (isLockedTool(found, code.editable)) stripped.push(field)
    else checked.push([name, found])
  }
  return Object.fromEntries(checked)
}

/** Which of a tool code owns: whether it is there at all, or its description too. */
function isLockedTool(override: ToolOverride, { tools }: Editable): boolean {
  if (tools === 'membership') return false
  const variants = Array.isArray(override) ? (override as ToolVariant[]) : []
  return tools === false || override === false || variants.some((one) => one.override === false)
}

function checkVariants(field: string, name: string, given: readonly unknown[], code: EditedCode): ToolVariant[] {
  if (given.length === 0 || given.length > maxVariants) throw refused(field, `a list of 1 to ${maxVariants} overrides with rules`)
  return given.map((variant, index) => {
    const of = `${field}[${index}]`
    checkNames(of, variant, ['rules', 'override'])
    const { rules, override } = variant as Record<string, unknown>
    return { rules: checkContextRules(`${of}.rules`, rules), override: checkTool(`${of}.override`, name, override, code) }
  })
}

function checkTool(field: string, name: string, override: unknown, code: EditedCode): PlainToolOverride {
  if (override === false) return false
  if (!isObject(override)) throw refused(field, 'false, which takes the tool out, { description }, or a list of these with rules')
  if (!code.tools.get(name)) throw refused(field, 'false: this tool is described by its provider')
  checkNames(field, override, ['description'])
  return { description: checkPlainText(`${field}.description`, override.description, maxDescription, code) }
}

function unknownTool(name: string, { agentId, tools }: EditedCode): HeedError {
  const known = tools.size === 0 ? 'It has none.' : `It has: ${[...tools.keys()].join(', ')}.`
  const message = `The code of agent '${agentId}' offers no tool '${name}', and an override cannot add one. ${known}`
  return new HeedError('invalid_argument', message, { details: { field: `tools.${name}` } })
}

export function locked(agentId: string, fields: readonly string[]): HeedError {
  const what = fields.length === 0 ? 'nothing of it may be edited' : `${fields.join(', ')} come from code`
  return new HeedError('edit_locked', `The code of agent '${agentId}' owns this: ${what}. Change it there, or allow it with 'editor'.`, {
    details: { agentId, fields: [...fields] },
  })
}

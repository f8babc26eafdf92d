import { checkNames, checkObject, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import { needsGuard, RESERVED_TAGS } from '../signals/tags.ts'
import type { AgentOverrides, Editable, ToolOverride } from './contract.ts'

/** In characters. Longer texts are documents, and cost the prompt of every run. */
const maxInstructions = 65_536
const maxDescription = 4_096
const maxTools = 256

/** Fields of an agent that always come from code. They are left out of what is saved. */
const ownedByCode = [
  'id', 'name', 'model', 'description', 'metadata', 'memory', 'agents', 'workflows', 'inputProcessors', 'outputProcessors',
]
/** Names that objects inherit. No tool has one. */
const inherited: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
/** What a template language would replace. A text is sent as it is, so that it would reach the model with its marks. */
const template = /\{\{|\{%|<%|\$\{/
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
    if (editable.instructions) overrides.instructions = checkPromptText('instructions', instructions, maxInstructions, code)
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
    if (override === false) {
      if (code.editable.tools === 'membership') checked.push([name, false])
      else stripped.push(field)
      continue
    }
    if (!isObject(override)) throw refused(field, 'false, which takes the tool out, or { description }')
    if (!code.tools.get(name)) throw refused(field, 'false: this tool is described by its provider')
    checkNames(field, override, ['description'])
    if (code.editable.tools === false) stripped.push(field)
    else checked.push([name, { description: checkPromptText(`${field}.description`, override.description, maxDescription, code) }])
  }
  return Object.fromEntries(checked)
}

/** A text that a model reads as instructions: bounded, stored unchanged by every store, without marks that would act elsewhere. */
function checkPromptText(field: string, text: unknown, most: number, { tags }: EditedCode): string {
  if (typeof text !== 'string' || text.trim() === '') throw refused(field, 'a text that is not empty')
  if (text.length > most) throw refused(field, `a text of at most ${most} characters; it has ${text.length}`)
  if (!text.isWellFormed() || text.includes('\0')) throw refused(field, 'a text of whole characters, without NUL')
  const mark = template.exec(text)?.[0]
  if (mark !== undefined) throw refused(field, `a text without templates, which are not replaced: it has '${mark}'`)
  if (needsGuard(text, [...RESERVED_TAGS, ...tags])) throw refused(field, 'a text without tags that Heed or the agent writes into prompts')
  return text
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

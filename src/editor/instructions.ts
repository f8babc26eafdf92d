import { checkNames, checkObject, refused } from '../base/arguments.ts'
import { isName, type JSONObject } from '../base/json.ts'
import { escapeReservedTags, needsGuard, RESERVED_TAGS } from '../signals/tags.ts'
import { checkContextRules, fitsContext } from './context-rules.ts'
import type { AgentOverrides, InstructionBlock, PromptBlock } from './contract.ts'
import { checkTemplate, renderTemplate } from './template.ts'

/** In characters, of one text and of all blocks together. Longer texts are documents, and cost the prompt of every run. */
export const maxInstructions = 65_536
const maxBlocks = 64
const maxDescription = 4_096
const types = ['text', 'prompt_block', 'prompt_block_ref'] as const

/** Names that objects inherit. */
export const inherited: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])
const blockId = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
/** What a template language would replace. */
const template = /\{\{|\{%|<%|\$\{/

export function checkBlockId(field: string, id: unknown): asserts id is string {
  if (typeof id === 'string' && blockId.test(id) && !inherited.has(id)) return
  throw refused(field, "the id of a prompt block: letters, digits, '.', '_' and '-', at most 128")
}

/** Where a text is used: tags that the agent reserves, and the keys that its templates may read; undefined where no agent is known. */
export interface PromptPlace {
  tags: readonly string[]
  keys?: readonly string[] | undefined
}

/** A text that a model reads as instructions: bounded, stored unchanged by every store, without marks that would act elsewhere. */
export function checkPromptText(field: string, text: unknown, most: number, { tags }: PromptPlace): string {
  if (typeof text !== 'string' || text.trim() === '') throw refused(field, 'a text that is not empty')
  if (text.length > most) throw refused(field, `a text of at most ${most} characters; it has ${text.length}`)
  if (!text.isWellFormed() || text.includes('\0')) throw refused(field, 'a text of whole characters, without NUL')
  if (needsGuard(text, [...RESERVED_TAGS, ...tags])) throw refused(field, 'a text without tags that Heed or the agent writes into prompts')
  return text
}

/** The same without templates, which would be sent with their marks. */
export function checkPlainText(field: string, text: unknown, most: number, at: PromptPlace): string {
  const checked = checkPromptText(field, text, most, at)
  const mark = template.exec(checked)?.[0]
  if (mark === undefined) return checked
  throw refused(field, `a text without templates, which are replaced in blocks alone: it has '${mark}'. Pass a list of blocks`)
}

/** Refuses instructions that may not be stored. */
export function checkInstructions(given: unknown, at: PromptPlace): string | InstructionBlock[] {
  if (!Array.isArray(given)) return checkPlainText('instructions', given, maxInstructions, at)
  if (given.length === 0 || given.length > maxBlocks) throw refused('instructions', `a text, or a list of 1 to ${maxBlocks} blocks`)
  const blocks = given.map((block, index) => checkBlock(`instructions[${index}]`, block, at))
  const length = blocks.reduce((sum, block) => sum + ('content' in block ? block.content.length : 0), 0)
  if (length > maxInstructions) throw refused('instructions', `blocks of at most ${maxInstructions} characters; they have ${length}`)
  return blocks
}

function checkBlock(field: string, block: unknown, at: PromptPlace): InstructionBlock {
  checkObject(field, block)
  const type = types.find((one) => one === block.type)
  if (!type) throw refused(`${field}.type`, `one of ${types.join(', ')}`)
  if (type === 'prompt_block_ref') {
    checkNames(field, block, ['type', 'id'])
    checkBlockId(`${field}.id`, block.id)
    return { type, id: block.id }
  }
  checkNames(field, block, type === 'text' ? ['type', 'content'] : ['type', 'content', 'rules'])
  const content = checkTemplateText(`${field}.content`, block.content, at)
  if (block.rules === undefined) return { type, content }
  return { type: 'prompt_block', content, rules: checkContextRules(`${field}.rules`, block.rules) }
}

function checkTemplateText(field: string, text: unknown, at: PromptPlace): string {
  const checked = checkPromptText(field, text, maxInstructions, at)
  checkTemplate(field, checked, at.keys)
  return checked
}

/** Refuses a prompt block that may not be stored. Which keys its templates may read depends on the agent that refers to it. */
export function checkPromptBlock(given: unknown): PromptBlock {
  checkNames('the prompt block', given, ['content', 'rules', 'description'])
  const { content, rules, description } = given as Record<string, unknown>
  const block: PromptBlock = { content: checkTemplateText('content', content, { tags: [] }) }
  if (rules !== undefined) block.rules = checkContextRules('rules', rules)
  if (description === undefined) return block
  if (!isName(description) || description.length > maxDescription)
    throw refused('description', `a text of at most ${maxDescription} characters`)
  return { ...block, description }
}

/** What a block becomes for a request. */
export interface RenderedBlock {
  type: InstructionBlock['type']
  /** Of a reference: the prompt block, and the version of it that is read. */
  id?: string
  version?: number
  /** Null where its rules do not fit the request. */
  text: string | null
}

interface Rendering {
  context: JSONObject
  keys: readonly string[]
  tags: readonly string[]
  /** Rejects where there is no such prompt block. */
  read(id: string): Promise<{ version: number; block: PromptBlock }>
}

/**
 * The text of instructions for a request: blocks are joined by an empty line; undefined where the rules leave none. No value, and no two of
 * them together, can be read as one of the tags of prompts.
 */
export async function renderInstructions(
  given: AgentOverrides['instructions'], { context, keys, tags, read }: Rendering,
): Promise<{ text: string | undefined; blocks: RenderedBlock[]; unset: string[] }> {
  if (given === undefined || typeof given === 'string') return { text: given, blocks: [], unset: [] }
  const unset: string[] = []
  const reserved = [...RESERVED_TAGS, ...tags]
  const textOf = ({ content, rules }: PromptBlock): string | null => {
    if (rules && !fitsContext(rules, context)) return null
    return escapeReservedTags(renderTemplate(content, { context, keys }, unset), reserved)
  }
  const rendered: RenderedBlock[] = []
  for (const block of given) {
    if (block.type !== 'prompt_block_ref') rendered.push({ type: block.type, text: textOf(block) })
    else {
      const { version, block: found } = await read(block.id)
      rendered.push({ type: block.type, id: block.id, version, text: textOf(found) })
    }
  }
  const texts = rendered.flatMap(({ text }) => (text === null || text.trim() === '' ? [] : text))
  const text = texts.length === 0 ? undefined : escapeReservedTags(texts.join('\n\n'), reserved)
  return { text, blocks: rendered, unset }
}

import { checkNames, checkText, checkWhole, refused } from '../base/arguments.ts'
import { isName, isObject } from '../base/json.ts'
import type { EditAuthor, ReleaseRule, TriedVersion } from './contract.ts'

const maxRules = 64
const maxValues = 1_000

/** Who makes a change, and why. */
export function authorOf({ by, why }: { by?: unknown; why?: unknown }): EditAuthor {
  checkText('by', by)
  if (by.length > 256 || !isName(by)) throw refused('by', 'a name of at most 256 characters')
  if (why === undefined) return { by }
  checkText('why', why)
  if (why.length > 4_096 || !isName(why)) throw refused('why', 'a text of at most 4,096 characters')
  return { by, why }
}

/** The numbers of a page. */
export function pageOf({ before, limit = 100 }: { before?: number; limit?: number }): { before?: number; limit: number } {
  if (before !== undefined) checkWhole('before', before, 1)
  checkWhole('limit', limit, 1)
  return { limit, ...(before !== undefined && { before }) }
}

export function checkTried(field: string, version: unknown): asserts version is TriedVersion {
  if (version === 'draft' || (Number.isSafeInteger(version) && Number(version) >= 0)) return
  throw refused(field, "the number of a version, or 'draft'")
}

export function checkReleaseRules(rules: unknown): asserts rules is ReleaseRule[] {
  if (!Array.isArray(rules) || rules.length > maxRules) throw refused('rules', `a list of at most ${maxRules} rules`)
  for (const [index, rule] of rules.entries()) checkRule(`rules[${index}]`, rule)
}

function checkRule(field: string, rule: unknown): void {
  checkNames(field, rule, ['version', 'context', 'resources', 'percent'])
  const { version, context, resources, percent } = rule as Record<string, unknown>
  checkWhole(`${field}.version`, version)
  if (context === undefined && resources === undefined && percent === undefined) {
    throw refused(field, 'a rule with a condition: context, resources or percent')
  }
  if (percent !== undefined && !(typeof percent === 'number' && percent >= 0 && percent <= 100)) {
    throw refused(`${field}.percent`, 'a number from 0 to 100')
  }
  if (resources !== undefined && !isListOf(resources, isName)) throw refused(`${field}.resources`, 'a list of resource ids')
  if (context === undefined) return
  if (!isObject(context) || Object.keys(context).length > maxRules) throw refused(`${field}.context`, 'an object with lists of values')
  for (const [key, values] of Object.entries(context)) {
    if (!isListOf(values, isScalar)) throw refused(`${field}.context.${key}`, 'a list of texts, numbers or booleans')
  }
}

function isListOf(value: unknown, is: (one: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.length <= maxValues && value.every(is)
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' ? value.length <= 1_024 : typeof value === 'boolean' || Number.isFinite(value)
}

import { isObject } from '../base/json.ts'
import type { CedarEngine } from './engine.ts'
import type { PolicySet } from './schema.ts'

/** What policies may read of the categories of a message. */
export interface CategoryReads {
  readsCategories: boolean
  /** The categories that they name. */
  categories: readonly string[]
}

const category = /^[a-z][a-z0-9_]{0,31}$/

/** What these policies read, as Cedar parses them: a text may write each of its characters as an escape. */
export function categoryReads(engine: CedarEngine, policies: PolicySet): CategoryReads {
  return uniteReads(Object.values(policies).map((text) => readsOf(engine, text)))
}

export function uniteReads(reads: readonly CategoryReads[]): CategoryReads {
  return {
    readsCategories: reads.some(({ readsCategories }) => readsCategories),
    categories: [...new Set(reads.flatMap(({ categories }) => categories))],
  }
}

/** A policy reads categories if it reads anything of the context but the taint. It then names its texts that have the form of one. */
function readsOf(engine: CedarEngine, text: string): CategoryReads {
  const parsed = engine.policyToJson(text)
  if (parsed.type === 'failure') return { readsCategories: true, categories: [] }
  let readsCategories = false
  const texts: string[] = []
  // Not recursive: a condition may be nested as deep as its text is long.
  for (const left: unknown[] = [parsed.json.conditions]; left.length > 0;) {
    const part = left.pop()
    if (Array.isArray(part)) left.push(...part.toReversed())
    if (!isObject(part) || isTaint(part)) continue
    if (part.Var === 'context') readsCategories = true
    else if (typeof part.Value === 'string') texts.push(part.Value)
    else left.push(...Object.values(part).toReversed())
  }
  return { readsCategories, categories: readsCategories ? texts.filter((one) => category.test(one)) : [] }
}

/** `context.tainted_by` and `context has tainted_by`. */
function isTaint(part: Record<string, unknown>): boolean {
  const read = part['.'] ?? part.has
  return isObject(read) && isObject(read.left) && read.left.Var === 'context' && read.attr === 'tainted_by'
}

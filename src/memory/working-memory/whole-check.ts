import type { StandardSchemaV1 } from '@standard-schema/spec'
import { HeedError } from '../../base/errors.ts'
import type { Schema } from '../../schema/schema.ts'
import { isObject, type WorkingMemoryChange, type WorkingMemoryValue } from '../../store/contract/working-memory.ts'

/**
 * Holds what a change makes of the whole to the schema itself, with all that JSON Schema has no word for. What is not known yet may be
 * missing, and what was wrong before the change is not laid to it.
 */
export function wholeCheck(schema: Schema): WorkingMemoryChange['check'] {
  if (!('~standard' in schema)) return undefined
  const standard = schema['~standard'] as Partial<StandardSchemaV1.Props>
  const validate = standard.validate
  if (!validate) return undefined
  const wrongIn = (value: WorkingMemoryValue): string[] => {
    const result = validate(value)
    if (result instanceof Promise) {
      result.catch(() => undefined)
      throw new HeedError('invalid_schema', 'workingMemory.schema can only be asked asynchronously, which a transaction has no time for. Leave out what is async in it.', { details: { option: 'workingMemory.schema' } })
    }
    return (result.issues ?? []).flatMap((issue) => {
      const path = pathOf(issue)
      return isThere(value, path) ? [path.length > 0 ? `${path.join('.')}: ${issue.message}` : issue.message] : []
    })
  }
  return (value, before) => {
    const wrong = wrongIn(value)
    if (wrong.length === 0) return
    const known = new Set(before === undefined ? [] : wrongIn(before))
    const added = wrong.filter((issue) => !known.has(issue))
    if (added.length === 0) return
    throw new HeedError('invalid_argument', `workingMemory would not match its schema: ${added.join('; ')}. Nothing was changed.`, { details: { field: 'workingMemory' } })
  }
}

function pathOf({ path = [] }: StandardSchemaV1.Issue): string[] {
  return path.map((segment) => String(typeof segment === 'object' ? segment.key : segment))
}

function isThere(value: unknown, path: readonly string[]): boolean {
  let inner = value
  for (const key of path) {
    if (!(isObject(inner) || Array.isArray(inner)) || !Object.hasOwn(inner, key)) return false
    inner = (inner as Record<string, unknown>)[key]
  }
  return true
}

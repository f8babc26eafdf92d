import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import type { Ask, AskContext } from './plan/graph.ts'
import type { AnyStep } from './step.ts'

/** Where one field of a map comes from. `path` names a field of it, with dots; '.' or nothing is the whole value. */
export type MappedField =
  | { step: AnyStep | readonly AnyStep[]; path?: string }
  | { initData: true; path?: string }
  | { value: unknown }
  | { requestContextPath: string }
  | { template: string }
  | { fn: (context: AskContext) => unknown }

export type Mapping = Readonly<Record<string, MappedField>>

const kinds = ['step', 'initData', 'value', 'requestContextPath', 'template', 'fn'] as const

/** A mapping as the function that it stands for. Throws what is wrong with it. */
export function mappingFunction(mapping: Mapping): Ask<unknown> {
  for (const [key, field] of Object.entries(mapping)) {
    const found = isObject(field) ? kinds.filter((kind) => kind in field) : []
    if (found.length !== 1) {
      throw new HeedError('invalid_workflow', `map(): '${key}' must have one of ${kinds.join(', ')}.`, { details: { field: key } })
    }
  }
  return async (context) => {
    const mapped: Record<string, unknown> = {}
    for (const [key, field] of Object.entries(mapping)) mapped[key] = await readField(field, context)
    return mapped
  }
}

function readField(field: MappedField, context: AskContext): unknown {
  if ('value' in field) return field.value
  if ('fn' in field) return field.fn(context)
  if ('template' in field)
    return field.template.replace(/\{\{\s*([\w.]+)\s*\}\}/g, (_, path: string) => asText(at(context.inputData, path)))
  if ('requestContextPath' in field) {
    const [key = '', ...rest] = field.requestContextPath.split('.')
    return at(context.requestContext.get(key), rest.join('.'))
  }
  if ('initData' in field) return at(context.getInitData(), field.path)
  const steps = Array.isArray(field.step) ? (field.step as readonly AnyStep[]) : [field.step as AnyStep]
  // Of the steps of a branch, the one that ran.
  const found = steps.map((step) => context.getStepResult(step)).find((result) => result !== null)
  return at(found, field.path)
}

/** A field of a value, by its own properties alone. */
function at(value: unknown, path: string | undefined): unknown {
  let found = value
  for (const key of path === undefined || path === '.' || path === '' ? [] : path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined
    found = (found as Record<string, unknown>)[key]
  }
  return found
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}

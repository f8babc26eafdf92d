import { checkNames, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import { compileSchema } from '../schema/compile.ts'
import type { Schema } from '../schema/schema.ts'
import { validated } from './call-step.ts'
import type { Ask, AskContext } from './plan/graph.ts'
import type { AnyStep } from './step.ts'

/**
 * Where one field of a map comes from. `path` names a field of it, with dots; '.' or nothing is the whole value. `schema` checks and makes
 * the field, and gives it its type.
 */
export type MappedField = { schema?: Schema } & (
  | { step: AnyStep | readonly AnyStep[]; path?: string }
  | { initData: true; path?: string }
  | { value: unknown }
  | { requestContextPath: string }
  | { template: string }
  | { fn: (context: AskContext) => unknown }
)

export type Mapping = Readonly<Record<string, MappedField>>

const kinds = ['step', 'initData', 'value', 'requestContextPath', 'template', 'fn'] as const
/** What a field has beside its kind. */
const besides: Readonly<Record<(typeof kinds)[number], readonly string[]>> = {
  step: ['path', 'schema'], initData: ['path', 'schema'], value: ['schema'], requestContextPath: ['schema'], template: ['schema'],
  fn: ['schema'],
}

/** A field of a map, to use it in several maps: it is checked where it is made, and keeps its type. */
export function mapVariable<const Field extends MappedField>(field: Field): Field {
  checkField('mapVariable()', field)
  return field
}

/** A mapping as the function that it stands for. Throws what is wrong with it. */
export function mappingFunction(mapping: Mapping): Ask<unknown> {
  for (const [key, field] of Object.entries(mapping)) checkField(`map(): '${key}'`, field)
  return async (context) => {
    const mapped: Record<string, unknown> = {}
    for (const [key, field] of Object.entries(mapping))
      mapped[key] = await validated(field.schema, await readField(field, context), `Field '${key}' of map()`, 'step_input_invalid')
    return mapped
  }
}

function checkField(who: string, field: MappedField): void {
  const found = isObject(field) ? kinds.filter((kind) => kind in field) : []
  const [kind] = found
  if (!kind || found.length !== 1)
    throw new HeedError('invalid_workflow', `${who} must have one of ${kinds.join(', ')}.`, { details: { field: who } })
  checkNames(who, field, [kind, ...besides[kind]])
  if ('initData' in field && (field.initData as unknown) !== true)
    throw refused(`initData of ${who}`, 'true: it is the input of the workflow that the map is in')
  if (field.schema !== undefined) compileSchema(field.schema, `the schema of ${who}`)
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

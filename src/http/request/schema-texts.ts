import { HeedError } from '../../base/errors.ts'
import { isPlainObject } from '../../base/json.ts'
import { fromEntries, mapTexts } from '../../base/json-texts.ts'

type MapText = (text: string) => string

/** Keywords with a schema, a list of schemas, a number or a flag. */
const ofSchemas: ReadonlySet<string> = new Set([
  'items', 'prefixItems', 'additionalItems', 'unevaluatedItems', 'contains', 'minContains', 'maxContains', 'additionalProperties',
  'unevaluatedProperties', 'propertyNames', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'contentSchema', 'multipleOf',
  'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems',
  'minProperties', 'maxProperties', 'deprecated', 'readOnly', 'writeOnly', 'nullable',
])

/** Keywords with texts or data, which stay valid when their texts are changed. */
const ofTexts: ReadonlySet<string> = new Set(['title', 'description', '$comment', 'default', 'const', 'enum', 'examples', 'required'])

/** Keywords with schemas under names: those of properties and definitions may change, patterns and references may not. */
const ofNames: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])
const ofPatterns: ReadonlySet<string> = new Set(['patternProperties', 'dependentSchemas', 'dependentRequired', 'dependencies'])

/** Keywords whose value has a meaning of its own. */
const ofMeaning: ReadonlySet<string> = new Set([
  'type', 'format', 'pattern', '$id', '$schema', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor', 'contentMediaType', 'contentEncoding',
])

/** Values that no caller wrote. */
const ofStandard: ReadonlySet<unknown> = new Set([
  'string', 'number', 'integer', 'boolean', 'object', 'array', 'null',
  'http://json-schema.org/draft-07/schema#', 'https://json-schema.org/draft/2020-12/schema',
])

/**
 * A JSON Schema with each text in it replaced. A model reads a schema as a whole, so that every text and every name in it counts, except
 * for the words of JSON Schema itself. A text that would have another meaning when it is changed, such as a pattern, must stay as it is.
 */
export function mapSchemaTexts(schema: unknown, map: MapText): unknown {
  if (Array.isArray(schema)) return schema.map((one) => mapSchemaTexts(one, map))
  if (!isPlainObject(schema)) return mapTexts(schema, map)
  return fromEntries(Object.entries(schema).map(([keyword, value]) => mapKeyword(keyword, value, map)))
}

function mapKeyword(keyword: string, value: unknown, map: MapText): [string, unknown] {
  if (ofSchemas.has(keyword)) return [keyword, mapSchemaTexts(value, map)]
  if (ofTexts.has(keyword)) return [keyword, mapTexts(value, map)]
  if (ofNames.has(keyword)) return [keyword, mapNamed(value, map, map)]
  if (ofPatterns.has(keyword)) return [keyword, mapNamed(value, map, unchanged(keyword, map))]
  if (ofMeaning.has(keyword)) return [keyword, mapTexts(value, unchanged(keyword, map))]
  return [map(keyword), mapTexts(value, map)]
}

function mapNamed(value: unknown, map: MapText, mapName: MapText): unknown {
  if (!isPlainObject(value)) return mapSchemaTexts(value, map)
  return fromEntries(Object.entries(value).map(([name, one]) => [mapName(name), mapSchemaTexts(one, map)]))
}

function unchanged(keyword: string, map: MapText): MapText {
  return (text) => {
    if (ofStandard.has(text) || map(text) === text) return text
    const reason = `it changes '${keyword}' of a JSON Schema, which would then mean something else`
    throw new HeedError('tripwire', `A guardrail refused the schema: ${reason}. Leave the text out of the schema.`, {
      details: { reason, keyword },
    })
  }
}

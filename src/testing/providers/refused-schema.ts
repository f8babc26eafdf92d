import type { JSONObject, JSONValue } from '@ai-sdk/provider'

/*
 * What providers say of schemas that they do not take. They are strict about the root: an object, and no choice.
 */

const choices = ['oneOf', 'anyOf', 'allOf', 'enum', 'not']

/** OpenAI, of an answer's schema. */
export function answerRefusal(format: JSONValue | undefined): string | undefined {
  if (!isObject(format) || !isObject(format.schema)) return undefined
  const { type, anyOf } = format.schema
  if (type === 'object' && anyOf === undefined) return undefined
  const got = type === 'object' ? 'anyOf' : `type: ${JSON.stringify(type ?? 'None')}`
  return `Invalid schema for response_format '${String(format.name)}': schema must be a JSON Schema of 'type: "object"', got '${got}'.`
}

/** OpenAI, of the input of a tool. */
export function functionRefusal(tools: JSONValue | undefined): string | undefined {
  for (const tool of listed(tools)) {
    const { name, parameters } = isObject(tool.function) ? tool.function : tool
    if (isObject(parameters) && !isPlainObject(parameters)) {
      return `Invalid schema for function '${String(name)}': schema must have type 'object' and not have ${choices.map((choice) => `'${choice}'`).join('/')} at the top level.`
    }
  }
  return undefined
}

/** Anthropic, of the input of a tool. */
export function toolRefusal(tools: JSONValue | undefined): string | undefined {
  const at = listed(tools).findIndex(({ input_schema: schema }) => isObject(schema) && !isPlainObject(schema))
  return at < 0 ? undefined : `tools.${at}.custom.input_schema: must be of type object and have no oneOf, allOf or anyOf at the top level`
}

function isPlainObject(schema: JSONObject): boolean {
  return schema.type === 'object' && choices.every((choice) => !(choice in schema))
}

function listed(tools: JSONValue | undefined): JSONObject[] {
  return Array.isArray(tools) ? tools.filter(isObject) : []
}

function isObject(value: JSONValue | undefined): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

import { HeedError } from '../base/errors.ts'
import { isDeep, isObject, maxDepth, type JSONObject, type JSONValue } from '../base/json.ts'

export function parseJSON(body: string): JSONValue {
  // It would be refused on each attempt: as invalid, so that the sender does not repeat it.
  if (isDeep(body)) throw invalidBody(`JSON of at most ${maxDepth} levels`)
  try {
    return JSON.parse(body) as JSONValue
  } catch (cause) {
    throw invalidBody('JSON', cause)
  }
}

export function parseObject(body: string): JSONObject {
  const value = parseJSON(body)
  if (!isObject(value)) throw invalidBody('a JSON object')
  return value
}

export function invalidBody(wanted: string, cause?: unknown): HeedError {
  return new HeedError('invalid_argument', `The body of this webhook is not ${wanted}.`, { cause })
}

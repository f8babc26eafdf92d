import { isObject, type JSONObject, type JSONValue } from '../../base/json.ts'

/** What a tool accepts as input besides an object: any JSON, or the text of its only argument, which is named. */
export type OtherInput = 'any JSON' | { textOf: string } | undefined

/**
 * The input of a call as a model wrote it. Providers require an object when the call is part of a later prompt: a text that can only mean
 * one object becomes that object, and invalid input is wrapped in one.
 */
export function parseInput(input: string, other: () => OtherInput): { args: JSONValue; invalid?: string } {
  if (input.trim() === '') return { args: {} }
  let args: JSONValue
  try {
    args = JSON.parse(input) as JSONValue
  } catch (error) {
    // Not taken for a text: it may be the beginning of one.
    return { args: { malformed: input }, invalid: `The input is not valid JSON: ${withoutQuote((error as Error).message)}` }
  }
  if (args === null) return { args: {} }
  if (isObject(args)) return { args }
  const accepted = other()
  if (accepted === 'any JSON') return { args }
  const meant = typeof args === 'string' ? (objectIn(args) ?? (accepted && { [accepted.textOf]: args })) : undefined
  return meant ? { args: meant } : { args: { malformed: input }, invalid: 'The input is not a JSON object' }
}

/** The object that a text encodes: models write the JSON of an input as a JSON string. */
function objectIn(text: string): JSONObject | undefined {
  if (!text.trimStart().startsWith('{')) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? (value as JSONObject) : undefined
  } catch {
    return undefined
  }
}

/** The engine's message quotes the input, which a `transform` may have to hide. */
function withoutQuote(message: string): string {
  return message.replace(/,? ?(?:\.\.\.)?"[\s\S]*"(?:\.\.\.)? is not valid JSON$/, '')
}

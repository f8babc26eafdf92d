import { HeedError } from '../base/errors.ts'
import { isPlainObject } from '../base/json.ts'

/** The JSON of a request. What JSON would leave out or change without a word is rejected by name: the server could not know of it. */
export function encodeBody(body: unknown): string {
  let text: string
  try {
    text = JSON.stringify(body)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new HeedError('invalid_argument', `The input can't be encoded as JSON: ${reason}`, { cause })
  }
  checkSendable(body, '')
  return text
}

function checkSendable(value: unknown, field: string): void {
  if (typeof value === 'function' || typeof value === 'symbol') throw notSendable(field, `a ${typeof value}`)
  if (typeof value === 'number' && !Number.isFinite(value)) throw notSendable(field, String(value))
  if (typeof value !== 'object' || value === null) return
  if ('toJSON' in value && typeof value.toJSON === 'function') return checkSendable(value.toJSON(), field)
  if (!Array.isArray(value) && !isPlainObject(value)) throw notSendable(field, `an instance of ${nameOfClass(value)}`)
  for (const [name, item] of Object.entries(value)) checkSendable(item, field === '' ? name : `${field}.${name}`)
}

function nameOfClass({ constructor }: object): string {
  return constructor?.name || 'a class'
}

function notSendable(field: string, what: string): HeedError {
  const remedy = field.endsWith('chema') ? 'Pass a JSON schema, such as z.toJSONSchema(schema).' : 'Pass JSON, or leave it out.'
  return new HeedError('invalid_argument', `${field} is ${what}, which can't be sent to a server. ${remedy}`, { details: { field } })
}

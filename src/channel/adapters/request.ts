import { HeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'

/** The largest body, as in the server's route. */
const maxBodyLength = 1024 * 1024

/** Checked before the signature, whose cost grows with the body. */
export function checkBodySize(body: string): void {
  if (body.length > maxBodyLength)
    throw new HeedError('too_large', `The body of this webhook has more than ${maxBodyLength} characters.`, { details: { maxBodyLength } })
}

/** The field of a parsed body, if it has this type. */
export function textField(value: unknown, name: string): string | undefined {
  const found = fieldOf(value, name)
  return typeof found === 'string' ? found : undefined
}

export function wholeField(value: unknown, name: string): number | undefined {
  const found = fieldOf(value, name)
  return Number.isSafeInteger(found) ? Number(found) : undefined
}

export function objectField(value: unknown, name: string): Record<string, unknown> | undefined {
  const found = fieldOf(value, name)
  return isObject(found) ? found : undefined
}

export function listField(value: unknown, name: string): readonly unknown[] {
  const found = fieldOf(value, name)
  return Array.isArray(found) ? found : []
}

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
}

/** Fields that the provider documents as present: a request without them is of no known version. */
export function missing(provider: string, field: string): HeedError {
  return new HeedError('invalid_argument', `This request of ${provider} has no valid '${field}'.`, { details: { field } })
}

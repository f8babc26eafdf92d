import { hidden, isSecret, secretTexts, shapes } from './secret-shapes.ts'

export { keepSecret } from './secret-shapes.ts'

/** How much of a value is written down. */
export interface RedactLimits {
  /** Characters of one text. */
  text: number
  /** Items of one list, fields of one object. */
  items: number
  depth: number
}

/** For logs: nobody reads more of a line. */
const brief: RedactLimits = { text: 32_768, items: 1_000, depth: 8 }
/** For what a program wants to have in full. */
export const unlimited: RedactLimits = { text: Number.POSITIVE_INFINITY, items: Number.POSITIVE_INFINITY, depth: 100 }

/** A text without the secrets in it. The work grows as the text does, whatever it says. */
export function redactText(text: string, most = brief.text): string {
  return cleanText(text, most, secretTexts())
}

/** A copy of what is to be written down, as plain data and without the secrets in it. Never throws: a log must not be what fails. */
export function redact(value: unknown, limits: RedactLimits = brief): unknown {
  return clean(value, { limits, secrets: secretTexts(), above: [] })
}

interface Cleaning {
  limits: RedactLimits
  secrets: readonly string[]
  /** What it is within. */
  above: readonly object[]
}

/** More than a secret is long: what a cut left of one goes too. */
const margin = 1_024

function cleanText(text: string, most: number, secrets: readonly string[]): string {
  if (text.length <= most) return hide(text, secrets)
  const shown = hide(text.slice(0, most + margin), secrets)
  return `${shown.slice(0, Math.min(most, Math.max(0, shown.length - margin)))}… (${text.length} characters)`
}

function hide(text: string, secrets: readonly string[]): string {
  let shown = text
  for (const secret of secrets) shown = shown.replaceAll(secret, hidden)
  for (const shape of shapes) shown = shown.replace(shape, `$1${hidden}`)
  return shown
}

function clean(value: unknown, cleaning: Cleaning): unknown {
  const { limits, secrets, above } = cleaning
  if (typeof value === 'string') return cleanText(value, limits.text, secrets)
  if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function') return String(value).slice(0, 200)
  if (typeof value !== 'object' || value === null) return value
  if (above.length >= limits.depth || above.includes(value)) return '[deeper]'
  try {
    return cleanObject(value, { ...cleaning, above: [...above, value] })
  } catch {
    return "[can't be read]"
  }
}

function cleanObject(value: object, cleaning: Cleaning): unknown {
  const { limits, secrets } = cleaning
  if (value instanceof Error) return cleanError(value, cleaning)
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
  if (value instanceof URL) return cleanText(value.href, limits.text, secrets)
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
  if (Array.isArray(value) || value instanceof Set) return cleanList([...value], cleaning)
  const entries = value instanceof Map || value instanceof Headers ? [...value] : Object.entries(value)
  return Object.fromEntries(entries.slice(0, limits.items).map(([key, item]) => {
    const name = String(key)
    return [cleanText(name, limits.text, secrets), isSecret(name, item) ? hidden : clean(item, cleaning)]
  }))
}

/** A list of two texts may be a name and its value: headers are often written so. */
function cleanList(items: readonly unknown[], cleaning: Cleaning): unknown[] {
  const [name, item] = items
  if (items.length === 2 && typeof name === 'string' && typeof item === 'string' && isSecret(name, item)) return [name, hidden]
  return items.slice(0, cleaning.limits.items).map((one) => clean(one, cleaning))
}

function cleanError(error: Error, cleaning: Cleaning): unknown {
  const { code } = error as { code?: unknown }
  return {
    name: error.name,
    message: cleanText(error.message, cleaning.limits.text, cleaning.secrets),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(error.cause === undefined ? {} : { cause: clean(error.cause, cleaning) }),
  }
}

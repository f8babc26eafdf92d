/** How much of a value is logged. */
interface RedactLimits {
  /** Characters of one text. */
  text: number
  /** Items of one list, fields of one object. */
  items: number
  depth: number
}

/** For logs. */
const brief: RedactLimits = { text: 32_768, items: 1_000, depth: 8 }
/** For values that a program needs in full. */
export const unlimited: RedactLimits = { text: Number.POSITIVE_INFINITY, items: Number.POSITIVE_INFINITY, depth: 100 }

/** A text without the secrets in it, in linear time. */
export function redactText(text: string, most = brief.text): string {
  return cleanText(text, most, secretTexts())
}

/** A copy of a value as plain data, without the secrets in it. Never throws: a log must not be the cause of a failure. */
export function redact(value: unknown, limits: RedactLimits = brief): unknown {
  return clean(value, { limits, secrets: secretTexts(), above: [] })
}

interface Cleaning {
  limits: RedactLimits
  secrets: readonly string[]
  /** The objects that contain the value. */
  above: readonly object[]
}

/** More than the length of a secret: the rest of a secret that a cut divided is removed too. */
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

/** A list of two texts may be a name and its value, as in lists of headers. */
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

/** The replacement of a secret. */
const hidden = '[redacted]'

/** Names of fields whose value is a secret, whatever its shape. */
const names = 'authorization|cookie|api[-_]?keys?|access[-_]?keys?|' +
  'private[-_]?keys?|secrets?|passwo?r?d|pwd|passphrase|credentials?|signature|token'

/** A field name with the quote after it, and the sign before its value. */
const fieldName = String.raw`(?:${names})(?:\\{0,15}["'])?\s{0,8}[:=]\s{0,8}`

/**
 * Shapes of secrets; the group stays. Texts may come from an attacker, so matching must take linear time: the part that a failed attempt
 * has read is bounded, or no later attempt reads it.
 */
const shapes: readonly RegExp[] = [
  /()-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
  /\b(Bearer\s{1,8})[\w.~+/=-]{8,}/gi,
  // Both are ordinary words too.
  /\b((?:[Bb]asic|[Tt]oken)\s{1,8})(?=[\w.~+/-]{0,200}[A-Z0-9=])[\w.~+/=-]{8,}/g,
  /()\b(?:sk|pk|rk)[-_][\w-]{12,}/g,
  /()\bwhsec_[\w+/=-]{8,}/g,
  /()\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|xai-|gsk_|hf_|npm_|pplx-|r8_)[\w-]{8,}/g,
  /()\bAIza[\w-]{20,}/g,
  /()\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g,
  // The beginning of an object in base64, and the parts after it.
  /()\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}/g,
  /\b(v1,)[\w+/]{40,}={0,2}/g,
  /\b(sha256=)[0-9a-f]{32,}/gi,
  // Up to the last @ before the path: passwords may have one.
  /(:\/\/[^\s/:@]{0,256}:)(?!\[redacted\]@)[^\s/]{1,512}(?=@)/g,
  // A header has several cookies.
  /(\bcookie\s{0,8}:\s{0,8})(?!\[redacted\])[^\s"'\\][^\r\n"'\\]{3,4096}/gi,
  // In quotes, also of JSON within JSON: up to the quote with as many backslashes before it.
  new RegExp(
    String.raw`(${fieldName}(?<slashes>\\{0,15})(?<quote>["']))(?!\[redacted\])(?:(?!(?<!\\)\k<slashes>\k<quote>)[\s\S]){1,8192}`,
    'gi',
  ),
  new RegExp(String.raw`(${fieldName})(?!\[redacted\]|(?:null|true|false|undefined)\b)[^\s"',;&}\]\\]{4,}`, 'gi'),
]

const secretName = new RegExp(
  'authorization|cookie|api[-_]?key|access[-_]?key|private[-_]?key|secret|passw(or)?d|pwd$|passphrase|credential|signature|bearer|' +
    '(^|[-_.a-z])tokens?$',
  'i',
)

/** A number is a count of secrets, not a secret. */
function isSecret(name: string, value: unknown): boolean {
  return secretName.test(name) && typeof value !== 'number' && typeof value !== 'boolean' && value !== null && value !== undefined
}

/** Variables of the environment whose value is a secret. */
const secretVariable = /(_|^)((API|ACCESS|PRIVATE|SECRET)_?KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$/i

const kept = new Set<string>()
const maxKept = 1_000
const minLength = 12

/** Hides this text in all later logs. For secrets without a shape. */
export function keepSecret(secret: string): void {
  if (secret.length < minLength) return
  kept.add(secret)
  const oldest = kept.size > maxKept ? kept.values().next().value : undefined
  if (oldest !== undefined) kept.delete(oldest)
}

/** The texts that are hidden: those of `keepSecret`, and keys in the environment. */
function secretTexts(): string[] {
  const texts = [...kept]
  // Reading all values takes most of the time of a log line: only those of secrets are read.
  for (const name of Reflect.ownKeys(process.env) as string[]) {
    if (!secretVariable.test(name)) continue
    const value = process.env[name]
    if (value !== undefined && value.length >= minLength) texts.push(value)
  }
  return texts
}

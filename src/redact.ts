/** What stands where a secret stood. */
const hidden = '[redacted]'

/** Names of fields whose text is a secret, however it looks. */
const secretName = /authorization|cookie|api[-_]?key|access[-_]?key|private[-_]?key|secret|passw(or)?d|passphrase|credential|signature|bearer|(^|[-_.a-z])token$/i
/** Variables of the environment whose value is one. */
const secretVariable = /(_|^)((API|ACCESS|PRIVATE|SECRET)_?KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$/i

/** What looks like a secret wherever it stands. The group, where there is one, stays. */
const shapes: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\b(Bearer)\s+[\w.~+/=-]{8,}/gi,
  // Both are words too.
  /\b([Bb]asic|[Tt]oken)\s+(?=[\w.~+/-]*[A-Z0-9=])[\w.~+/=-]{8,}/g,
  /\b(?:sk|pk|rk)[-_][\w-]{12,}/g,
  /\bwhsec_[\w+/=-]{8,}/g,
  /\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|xai-|gsk_|hf_|npm_|pplx-|r8_)[\w-]{8,}/g,
  /\bAIza[\w-]{20,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g,
  /\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*/g,
  /\b(v1,)[\w+/]{40,}={0,2}/g,
  /\b(sha256=)[0-9a-f]{32,}/gi,
  /(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi,
  /((?:authorization|cookie|api[-_]?key|access[-_]?key|access[-_]?token|refresh[-_]?token|client[-_]?secret|webhook[-_]?secret|secret|password|passwd)["']?\s*[:=]\s*["']?)[^\s"',;&}\]]{4,}/gi,
]

const given = new Set<string>()
const mostGiven = 1_000
const shortest = 12

/** From here on this very text is hidden wherever it would be written. For secrets that have no shape. */
export function keepSecret(secret: string): void {
  if (secret.length < shortest) return
  given.add(secret)
  const oldest = given.size > mostGiven ? given.values().next().value : undefined
  if (oldest !== undefined) given.delete(oldest)
}

/** A text without the secrets in it. */
export function redactText(text: string): string {
  let clean = text
  for (const secret of given) clean = clean.replaceAll(secret, hidden)
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && value.length >= shortest && secretVariable.test(name)) clean = clean.replaceAll(value, hidden)
  }
  for (const shape of shapes) clean = clean.replace(shape, (_, kept: unknown) => (typeof kept === 'string' ? (/^[a-z]+$/i.test(kept) ? `${kept} ${hidden}` : `${kept}${hidden}`) : hidden))
  return clean
}

const deepest = 8

/** A copy of what is to be written down, as plain data and without the secrets in it. Never throws: a log must not be what fails. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint' || typeof value === 'symbol' || typeof value === 'function') return String(value).slice(0, 200)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= deepest) return '[deeper]'
  try {
    if (value instanceof Error) return redactError(value, depth)
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
    if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1))
    const entries = value instanceof Map || value instanceof Headers ? [...value] : Object.entries(value)
    return Object.fromEntries(entries.map(([name, item]) => [String(name), isSecret(String(name), item) ? hidden : redact(item, depth + 1)]))
  } catch {
    return "[can't be read]"
  }
}

function redactError(error: Error, depth: number): unknown {
  const { code } = error as { code?: unknown }
  return {
    name: error.name,
    message: redactText(error.message),
    ...(typeof code === 'string' || typeof code === 'number' ? { code } : {}),
    ...(error.cause === undefined ? {} : { cause: redact(error.cause, depth + 1) }),
  }
}

function isSecret(name: string, value: unknown): boolean {
  return secretName.test(name) && typeof value !== 'number' && typeof value !== 'boolean' && value !== null && value !== undefined
}

/** What stands where a secret stood. */
export const hidden = '[redacted]'

/** Names of fields whose value is a secret, however it looks. */
const names = 'authorization|cookie|api[-_]?keys?|access[-_]?keys?|private[-_]?keys?|secrets?|passwo?r?d|pwd|passphrase|credentials?|signature|token'

/**
 * What looks like a secret wherever it stands; the group stays. Texts may be anybody's, so the work must grow as they do: where one attempt
 * fails, what it went over is bounded or out of reach of the next.
 */
export const shapes: readonly RegExp[] = [
  /()-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
  /\b(Bearer\s{1,8})[\w.~+/=-]{8,}/gi,
  // Both are words too.
  /\b((?:[Bb]asic|[Tt]oken)\s{1,8})(?=[\w.~+/-]{0,200}[A-Z0-9=])[\w.~+/=-]{8,}/g,
  /()\b(?:sk|pk|rk)[-_][\w-]{12,}/g,
  /()\bwhsec_[\w+/=-]{8,}/g,
  /()\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|xai-|gsk_|hf_|npm_|pplx-|r8_)[\w-]{8,}/g,
  /()\bAIza[\w-]{20,}/g,
  /()\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g,
  // What begins an object in base64, and the parts after it.
  /()\beyJ[\w-]{8,}(?:\.[\w-]*){0,4}/g,
  /\b(v1,)[\w+/]{40,}={0,2}/g,
  /\b(sha256=)[0-9a-f]{32,}/gi,
  // Up to the last @ before the path: passwords may have one.
  /(:\/\/[^\s/:@]{0,256}:)(?!\[redacted\]@)[^\s/]{1,512}(?=@)/g,
  // A header has several cookies.
  /(\bcookie\s{0,8}:\s{0,8})(?!\[redacted\])[^\s"'\\][^\r\n"'\\]{3,4096}/gi,
  // In quotes, also of JSON within JSON: up to the quote with as many backslashes before it.
  new RegExp(String.raw`((?:${names})(?:\\{0,15}["'])?\s{0,8}[:=]\s{0,8}(?<slashes>\\{0,15})(?<quote>["']))(?!\[redacted\])(?:(?!(?<!\\)\k<slashes>\k<quote>)[\s\S]){1,8192}`, 'gi'),
  new RegExp(String.raw`((?:${names})(?:\\{0,15}["'])?\s{0,8}[:=]\s{0,8})(?!\[redacted\]|(?:null|true|false|undefined)\b)[^\s"',;&}\]\\]{4,}`, 'gi'),
]

const secretName = /authorization|cookie|api[-_]?key|access[-_]?key|private[-_]?key|secret|passw(or)?d|pwd$|passphrase|credential|signature|bearer|(^|[-_.a-z])tokens?$/i

/** Numbers say how many there are. */
export function isSecret(name: string, value: unknown): boolean {
  return secretName.test(name) && typeof value !== 'number' && typeof value !== 'boolean' && value !== null && value !== undefined
}

/** Variables of the environment whose value is one. */
const secretVariable = /(_|^)((API|ACCESS|PRIVATE|SECRET)_?KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$/i

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

/** The very texts that are hidden now: those that were given, and keys in the environment. */
export function secretTexts(): string[] {
  const keys = Object.entries(process.env).flatMap(([name, value]) => (value !== undefined && value.length >= shortest && secretVariable.test(name) ? [value] : []))
  return [...given, ...keys]
}

import type { RegexRule } from './text-scanner.ts'

/** The name of a preset of rules. */
export type RegexPreset = 'secrets' | 'pii' | 'urls'

/*
 * Every pattern takes linear time: a match can begin only once in a run of its characters (a lookbehind ensures that) or has a bounded
 * length, and no two adjacent quantifiers match the same character.
 */

/** The end of a text that may begin a key, an address or a name: characters without a blank. */
const word = /(?<![\w+/=.~%@'-])[\w+/=.~%@'-]+$/
/**
 * The end of a text that may begin a number with blanks and dashes. The patterns themselves check the character before it: some match a
 * number after a letter.
 */
const digits = /[+(\d][\d ().-]{0,48}$/

const keyBegin = '-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----'
const keyBody = String.raw`(?:(?!-----(?:BEGIN|END))[\w+/=\s\\:,.-]){0,16384}`

/** Sixteen digits in groups of four, fifteen of American Express, fourteen of Diners Club. */
const cardNumber = [
  String.raw`(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|6\d{3}|35\d\d)(?:[ -]?\d{4}){3}`,
  String.raw`3[47]\d\d[ -]?\d{6}[ -]?\d{5}`,
  String.raw`3[0689]\d\d[ -]?\d{6}[ -]?\d{4}`,
].join('|')

const secrets: readonly RegexRule[] = [
  { name: 'aws-access-key-id', pattern: /(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])/, opening: word },
  {
    name: 'aws-secret-access-key',
    pattern: /(?<!\w)aws_?secret_?access_?key["']?\s{0,4}[=:]\s{0,4}["']?[A-Za-z0-9/+=]{40}(?![A-Za-z0-9/+=])/i,
    opening: /(?<!\w)(?:aws_?secret_?access_?key["']?\s{0,4}[=:]?\s{0,4}["']?[A-Za-z0-9/+=]*|\w+)$/i,
  },
  { name: 'github-token', pattern: /(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})/, opening: word },
  { name: 'anthropic-key', pattern: /(?<![\w-])sk-ant-[\w-]{20,}/, opening: word },
  { name: 'openai-key', pattern: /(?<![\w-])sk-(?!ant-)[\w-]{20,}/, opening: word },
  { name: 'google-api-key', pattern: /(?<![\w-])AIza[\w-]{35}(?![\w-])/, opening: word },
  { name: 'slack-token', pattern: /(?<![\w-])xox[abeoprs]-[A-Za-z0-9-]{10,}/, opening: word },
  { name: 'stripe-key', pattern: /(?<!\w)[rs]k_(?:live|test)_[A-Za-z0-9]{16,}/, opening: word },
  {
    name: 'private-key',
    // A truncated key counts too, so its end is optional.
    pattern: new RegExp(`${keyBegin}${keyBody}(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?`),
    opening: new RegExp(
      `(?:-{1,5}(?:B(?:E(?:G(?:I(?:N[A-Z0-9 -]{0,70})?)?)?)?)?|${keyBegin}${keyBody}(?:-----END[A-Z0-9 -]{0,70})?)$`,
    ),
  },
  { name: 'jwt', pattern: /(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}/, opening: word },
  {
    name: 'bearer-token',
    pattern: /(?<![\w-])bearer\s{1,8}[\w.~+/-]{15,}[\w~+/-]={0,2}/i,
    opening: /(?<![\w-])(?:bearer\s{1,8}[\w.~+/=-]*|[\w-]+)$/i,
  },
]

const pii: readonly RegexRule[] = [
  { name: 'email', pattern: /(?<![\w.%+-])[\w%+][\w.%+'-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}/, opening: word },
  {
    name: 'iban',
    pattern: /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])/,
    measure: ibanLength,
    opening: /(?<![A-Za-z0-9])[A-Z]{1,2}(?:\d{1,2}[A-Z0-9 ]{0,42})?$/,
  },
  {
    name: 'credit-card',
    pattern: new RegExp(String.raw`(?<![\d.])(?:${cardNumber})(?!\d)`),
    measure: (match) => (passesLuhn(match) ? match.length : 0),
    opening: digits,
  },
  { name: 'ssn', pattern: /(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\d-])/, opening: digits },
  {
    name: 'phone',
    pattern: /(?<![\w+.])(?:(?:\+|00)[1-9](?:[ ().-]{0,2}\d){6,14}|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?!\d)/,
    opening: digits,
  },
  { name: 'ip-address', pattern: /(?<![\d.])(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}(?!\d|\.\d)/, opening: word },
]

const urls: readonly RegexRule[] = [
  {
    name: 'url',
    pattern: /(?<!\w)(?:(?:https?|ftp|wss?):\/\/|www\.)[^\s<>"'`]+/i,
    opening: /(?<![^\s<>"'`])[^\s<>"'`]+$/,
  },
]

/** The rules of each preset of `RegexFilter`. */
export const regexPresets: Readonly<Record<RegexPreset, readonly RegexRule[]>> = { secrets, pii, urls }

function passesLuhn(text: string): boolean {
  let sum = 0
  const digits = text.replace(/\D/g, '')
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index])
    const doubled = index % 2 === 0 ? digit : digit * 2
    sum += doubled > 9 ? doubled - 9 : doubled
  }
  return sum % 10 === 0
}

/** Capital letters after an account number look like a part of it: the longest prefix with a valid checksum counts. */
function ibanLength(text: string): number {
  for (let candidate = text; candidate !== ''; candidate = candidate.slice(0, candidate.lastIndexOf(' ')).trimEnd()) {
    if (hasIbanChecksum(candidate.replaceAll(' ', ''))) return candidate.length
    if (!candidate.includes(' ')) break
  }
  return 0
}

function hasIbanChecksum(iban: string): boolean {
  if (iban.length < 15) return false
  let remainder = 0
  for (const character of iban.slice(4) + iban.slice(0, 4)) {
    const value = Number.parseInt(character, 36)
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97
  }
  return remainder === 1
}

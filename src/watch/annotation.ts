import { isObject, type JSONObject } from '../base/json.ts'

/**
 * The labels that a message can get without any watch asking for them. A small and stable set: an annotator that knows few labels uses the
 * same one for the same thing.
 */
export const CATEGORIES: readonly string[] = [
  'verification_code', 'auth', 'reply', 'urgent', 'alert', 'question', 'request', 'confirmation', 'reminder', 'scheduling', 'delivery',
  'finance', 'link', 'travel', 'promotion', 'personal', 'work',
]

/** Of one watch, and of one message. */
export const MAX_CATEGORIES = 32
/** Labels that one call of an annotator may choose from. */
export const MAX_OFFERED = 256
/** Labels that the open watches of a resource may expect together. An annotator is asked once for each `MAX_OFFERED` of them. */
export const MAX_EXPECTED = 4096
/** Entries of an annotator's output that are read. */
const MAX_READ = 1024
/** Characters of a message that the rules read. */
export const MAX_RULE_TEXT = 8000

const category = /^[a-z][a-z0-9_]{0,31}$/

/** True for a label that can stand in a prompt: a watch's labels are in the prompt of every message of its resource. */
export function isCategory(value: unknown): value is string {
  return typeof value === 'string' && category.test(value)
}

/** True for a label that is no part of the closed set: an annotator is offered it only while an open watch expects it. */
export function isOwnCategory(label: string): boolean {
  return !CATEGORIES.includes(label)
}

/**
 * The labels that an annotator may give a message: the closed set, and those that open watches expect. One list for each call of the
 * annotator: no label is left out for their number.
 */
export function offeredCategories(expected: Iterable<string>): ReadonlyArray<readonly string[]> {
  const all = new Set(CATEGORIES)
  for (const label of expected) if (isCategory(label)) all.add(label)
  const labels = [...all]
  const calls = Math.ceil(labels.length / MAX_OFFERED)
  return Array.from({ length: calls }, (_, nth) => labels.slice(nth * MAX_OFFERED, (nth + 1) * MAX_OFFERED))
}

/** JSON Schema for the structured call of an annotator: labels of the offer, and no text. */
export function annotationSchema(offered: readonly string[]): JSONObject {
  return {
    type: 'object',
    properties: { categories: { type: 'array', items: { type: 'string', enum: [...offered] }, maxItems: MAX_CATEGORIES } },
    required: ['categories'],
    additionalProperties: false,
  }
}

/**
 * The labels of an annotator's output that were offered, in the order of the offer. Everything else is dropped: the annotator has read the
 * text of a stranger and may write what that asks for. Any JSON is read without an error.
 */
export function acceptCategories(output: unknown, offered: readonly string[]): string[] {
  const list = isObject(output) ? Object.getOwnPropertyDescriptor(output, 'categories')?.value : output
  if (!Array.isArray(list)) return []
  const given = new Set<unknown>(list.slice(0, MAX_READ))
  return offered.filter((label) => isCategory(label) && given.has(label)).slice(0, MAX_CATEGORIES)
}

/** The union, first the labels of rules: a limit never drops what is certain. */
export function uniteCategories(...lists: ReadonlyArray<readonly string[]>): string[] {
  return [...new Set(lists.flat().filter(isCategory))].slice(0, MAX_CATEGORIES)
}

/**
 * Labels that need no model, of a text as `visibleText` returns it: codes, links and amounts of money. They hold where a model fails, or
 * where a text is written so that it overlooks them; a false one costs an evaluation and never a match.
 */
export function ruleCategories(text: string): string[] {
  const written = withASCIIDigits(text.slice(0, MAX_RULE_TEXT))
  const read = { written, latin: withLatinLetters(written) }
  return [
    ...(hasCode(read.written) || hasCode(read.latin) ? ['verification_code', 'auth'] : []),
    ...(amount.test(read.written) || amount.test(read.latin) ? ['finance'] : []),
    ...(link.test(read.written) || link.test(read.latin) ? ['link'] : []),
  ]
}

/** Four to eight digits, also in two halves and behind a letter (`123 456`, `123-456`, `G-123456`), that are no part of a longer number. */
const digits = /(?<!\d[.,:/-])(?<![\d+])(?:\d{4,8}|\d{3}[ -]\d{3}|\d{4}[ -]\d{4}|\p{L}{1,3}-\d{4,8})(?![\d:/]|[.,-]\d)/u
/** Five to eight capital letters and digits with at least one of each. */
const mixed = /(?<![A-Za-z0-9-])(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{5,8}(?![A-Za-z0-9-])/
/** What is written beside a code, in the languages that cost a word each. */
const codeWord = new RegExp(
  [
    String.raw`(?<!\p{L})(?:otp|pin|tan|2fa|login|log[ -]?in|sign[ -]?in|einmal\p{L}*|anmeld\p{L}*|verif\p{L}*|authenti\p{L}*)(?!\p{L})`,
    'code|kod|código|codigo|codice|κωδικ|код|passwor|kennwort|пароль|parol|şifre|sifre|senha|clave',
    'contraseña|mot de passe|mã xác|mã otp|heslo|hasło',
    '验证码|驗證碼|校验码|动态码|認証コード|確認コード|認証番号|パスワード|인증번호|인증 ?코드|비밀번호|رمز|كود|کد|קוד|कोड|ओटीपी|รหัส',
  ].join('|'),
  'iu',
)

function hasCode(text: string): boolean {
  if (/^(?:\d{4,8}|\d{3}[ -]\d{3})$/.test(text.trim())) return true
  return codeWord.test(text) && (digits.test(text) || mixed.test(text))
}

const currencySign = '[$€£¥₹₽₩₺₴₪฿₫]|元|円|원'
const currencyName =
  'EUR|USD|GBP|CHF|JPY|CNY|INR|RUB|BRL|PLN|SEK|NOK|DKK|CZK|TRY|AUD|CAD|MXN|KRW|[Ee]uros?|[Dd]ollars?|zł|kr|Kč|руб'
const currency = String.raw`${currencySign}|(?<!\p{L})(?:${currencyName})(?!\p{L})`
const amount = new RegExp(String.raw`(?:${currency})\s?\d|\d\s?(?:${currency})`, 'u')

const domains = 'com|net|org|io|co|app|dev|info|me|ly|gl|ru|de|fr|uk|us|eu|cn|in|br|xyz|top|site|online|link|click'
const link = new RegExp(
  String.raw`\bhttps?://[^\s/]|\bwww\.[a-z0-9-]|(?<![\w@.-])(?:[a-z0-9-]{1,63}\.){1,4}(?:${domains})(?:/|\b(?![.@\w-]))`,
  'i',
)

/** Digits of other scripts as ASCII ones. NFKC changes the fullwidth ones alone. */
function withASCIIDigits(text: string): string {
  return text.replace(/[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59]/g, (digit) => {
    const zero = zeros.findLast((code) => code <= digit.charCodeAt(0)) ?? 0
    return String(digit.charCodeAt(0) - zero)
  })
}

/** Cyrillic and Greek letters that look like Latin ones, and dotless or small-capital ones, as those: a word is read as it looks. */
function withLatinLetters(text: string): string {
  return text.replace(lookAlike, (letter) => latinOf.get(letter) ?? letter)
}

const looks: Readonly<Record<string, string>> = {
  a: 'аαɑ', b: 'ЬƄ', c: 'сϲⅽ', d: 'ԁⅾ', e: 'еєҽ', g: 'ɡց', h: 'һհ', i: 'іıιӏ', j: 'ј', k: 'кκ', l: 'ⅼӀ', m: 'ⅿм', n: 'ոп', o: 'оοօ',
  p: 'рρ', q: 'ԛ', r: 'г', s: 'ѕ', t: 'тτ', u: 'υս', v: 'ѵν', w: 'ԝω', x: 'хχ', y: 'уγү', A: 'АΑ', B: 'ВΒ', C: 'СϹ', E: 'ЕΕ', G: 'Ԍ',
  H: 'НΗ', I: 'ІΙ', J: 'Ј', K: 'КΚ', M: 'МΜ', N: 'Ν', O: 'ОΟ', P: 'РΡ', S: 'Ѕ', T: 'ТΤ', X: 'ХΧ', Y: 'ҮΥ', Z: 'Ζ',
}
const latinOf: ReadonlyMap<string, string> = new Map(
  Object.entries(looks).flatMap(([latin, others]) => Array.from(others, (one) => [one, latin] as const)),
)
const lookAlike = new RegExp(`[${[...latinOf.keys()].join('')}]`, 'gu')

const zeros = [0x0660, 0x06f0, 0x0966, 0x09e6, 0x0e50]

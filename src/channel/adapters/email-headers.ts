import { HeedError } from '../../base/errors.ts'

/** A header of a message, as it was received: name and value. */
export type MailHeader = readonly [name: string, value: string]

/** The author of a message. */
interface Mailbox {
  /** As it is written, without the name, comments and brackets. */
  address: string
  name?: string
}

/** All values of a header, from top to bottom. `name` is in lower case. */
export function headerValues(headers: readonly MailHeader[], name: string): string[] {
  return headers.filter(([other]) => other.toLowerCase() === name).map(([, value]) => value)
}

/**
 * The one author of a message. Rejects a message with none, with several, or with a text from which programs read different addresses. An
 * address inside of a name, a comment or a quotation is no address.
 */
export function readFrom(headers: readonly MailHeader[]): Mailbox {
  const values = headerValues(headers, 'from')
  const [value] = values
  if (value === undefined || values.length > 1) throw invalidMail(value === undefined ? 'no From' : 'several From headers')
  const parts = tokensOf(value, true)
    ?.filter(({ kind, text }) => kind !== 'comment' && (kind !== 'text' || text.trim() !== ''))
    .map(({ kind, text }) => ({ kind, text: text.trim() }))
  const last = parts?.pop()
  const address = last?.text ?? ''
  if (parts === undefined || !isAddressPart(address) || last?.kind === 'quoted' || (last?.kind === 'text' && parts.length > 0))
    throw invalidMail('a From that is not one address')
  for (const { kind, text } of parts) {
    const isName = kind === 'quoted' || (kind === 'text' && (!/[,;:@]/.test(text) || text === address))
    if (!isName) throw invalidMail('a From that is not one address')
  }
  const name = decodeWords(parts.map(({ text }) => text).join(' ')).trim()
  return { address, ...(name === '' ? {} : { name }) }
}

/** The outcome of DMARC as the receiving server reports it. */
interface DmarcResult {
  result: string
  /** The domain that it was evaluated for. */
  domain?: string
}

/**
 * The result of DMARC in the `Authentication-Results` of the server with this id; undefined where it has none. Of several none counts: the
 * server writes one, and another was in the message when it arrived.
 */
export function readDmarc(headers: readonly MailHeader[], authservId: string): DmarcResult | undefined {
  const found = headerValues(headers, 'authentication-results').flatMap((value) => {
    const [id, ...results] = statementsOf(value)
    if (id?.[0]?.toLowerCase() !== authservId.toLowerCase()) return []
    return results.flatMap(([method = '', ...properties]) => {
      const result = /^dmarc(?:\/\d+)?=(\w+)$/i.exec(method)?.[1]
      if (result === undefined) return []
      const domains = properties.flatMap((word) => /^header\.from=(\S+)$/i.exec(word)?.[1] ?? [])
      return [{ result: result.toLowerCase(), ...(domains.length === 1 ? { domain: domains[0]?.toLowerCase() } : {}) }]
    })
  })
  return found.length === 1 ? found[0] : undefined
}

/** The words of each statement between semicolons. Comments are left out; a quotation with anything but a token in it is one word. */
function statementsOf(value: string): string[][] {
  const text = (tokensOf(value, false) ?? []).map(({ kind, text }) => {
    if (kind === 'quoted') return /^[\w.-]+$/.test(text) ? text : '?'
    return kind === 'comment' ? ' ' : text
  })
  // White space becomes one space first: looking for it before each sign would take quadratic time.
  const statements = text.join('').split(';').map((statement) => statement.trim().split(/\s+/).join(' '))
  return statements.map((statement) => statement.replace(/ ?= ?/g, '=').split(' ').filter((word) => word !== ''))
}

interface Token {
  kind: 'text' | 'quoted' | 'comment' | 'angle'
  text: string
}

/** Texts, quotations, comments and what is in angle brackets; undefined where one is not closed. */
function tokensOf(value: string, angles: boolean): Token[] | undefined {
  const tokens: Token[] = []
  let from = 0
  for (let at = 0; at < value.length; at++) {
    const character = value[at]
    const kind = character === '"' ? 'quoted' : character === '(' ? 'comment' : angles && character === '<' ? 'angle' : undefined
    if (kind === undefined) continue
    const end = kind === 'comment' ? endOfComment(value, at) : endOf(value, at, kind === 'quoted' ? '"' : '>')
    if (end === -1) return undefined
    tokens.push({ kind: 'text', text: value.slice(from, at) })
    const inner = value.slice(at + 1, end)
    tokens.push({ kind, text: kind === 'quoted' ? inner.replace(/\\([\s\S])/g, '$1') : inner })
    at = end
    from = end + 1
  }
  tokens.push({ kind: 'text', text: value.slice(from) })
  return tokens
}

function endOf(value: string, start: number, close: string): number {
  for (let at = start + 1; at < value.length; at++) {
    if (value[at] === '\\') at++
    else if (value[at] === close) return at
  }
  return -1
}

/** Comments may contain comments. */
function endOfComment(value: string, start: number): number {
  let depth = 0
  for (let at = start; at < value.length; at++) {
    if (value[at] === '\\') at++
    else if (value[at] === '(') depth++
    else if (value[at] === ')' && --depth === 0) return at
  }
  return -1
}

function isAddressPart(text: string): boolean {
  return text.includes('@') && !/[\s<>,;:"()\\]/.test(text)
}

/** Encoded words (`=?utf-8?B?…?=`) as text. One that can't be decoded stays as it is. */
export function decodeWords(value: string): string {
  // White space between two of them is not part of the text.
  const joined = value.replace(/\?=\s{1,80}=\?/g, '?==?')
  return joined.replace(/=\?([\w-]{1,40})\?([BQ])\?([^?\s]{0,1000})\?=/gi, (word, charset: string, encoding: string, content: string) => {
    try {
      const bytes = encoding.toUpperCase() === 'B' ? Buffer.from(content, 'base64') : quotedBytes(content)
      return new TextDecoder(charset, { fatal: true }).decode(bytes)
    } catch {
      // An unknown character set, or bytes of another.
      return word
    }
  })
}

function quotedBytes(content: string): Buffer {
  const text = content.replaceAll('_', ' ').replace(/=([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(text, 'latin1')
}

export function invalidMail(what: string): HeedError {
  return new HeedError('invalid_argument', `This mail has ${what}.`, { details: { field: 'headers' } })
}

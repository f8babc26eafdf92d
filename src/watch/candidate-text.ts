import { HeedError } from '../base/errors.ts'
import { escapeAttribute, escapeText } from '../signals/tags.ts'

/** An inbound message as the judge and the annotator see it. Every text of it is what its sender wrote. */
export interface CandidateView {
  /** The kind of the channel. */
  readonly channel: string
  /** Whether the channel verified who the sender is. */
  readonly verified: boolean
  readonly sender?: string
  readonly senderName?: string
  readonly subject?: string
  readonly text: string
  /** The text was cut when the message was stored. */
  readonly truncated?: boolean
  readonly attachments?: ReadonlyArray<{ readonly filename?: string; readonly mediaType?: string; readonly size?: number }>
  /** ISO 8601. */
  readonly receivedAt?: string
}

interface CandidateOptions {
  /** Random letters and digits, new for each message: its sender can't know the name of the element that the message is in. */
  readonly nonce: string
  /** Characters of the body that are shown. */
  readonly maxLength?: number
}

interface ShownText {
  readonly text: string
  readonly truncated: boolean
}

const MAX_BODY = 8000
const MAX_LINE = 200
const MAX_ATTACHMENTS = 10

/** Escape sequences of terminals, as a whole: without its first character the rest would be left as text. */
const terminalSequence = new RegExp(
  [
    // A control sequence, such as a color.
    String.raw`(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]?`,
    // A string up to its end, such as the title of a window.
    String.raw`(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u0080-\u009f]*(?:\u0007|\u001b\\|\u009c)`,
    String.raw`\u001b[ -/]*[0-~]?`,
  ].join('|'),
  'g',
)
/** Characters without a glyph: controls but tab and line break, bidi marks, zero-width, tags, selectors, the empty Braille cell. */
const hidden = /(?![\t\n])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800\u2028\u2029]/u
const allHidden = new RegExp(hidden.source, 'gu')
const lineBreak = /\r\n?|[\u0085\u2028\u2029\v\f]/g
/** Marks on one letter beyond what any script writes. */
const piledMarks = /(\p{M}{4})\p{M}+/gu

/** True for a text with characters that a reader doesn't see: two texts that look equal could differ. */
export function hasHiddenCharacters(text: string): boolean {
  return hidden.test(text)
}

/**
 * What a reader would see of a text, with at most `maxLength` characters. Hidden characters and terminal sequences are removed, and
 * compatibility forms become ordinary ones (a fullwidth angle bracket an angle bracket): before escaping, since an escaped text that is
 * normalized later could end its element after all. Line breaks in a row become one, which keeps a text from imitating the turns of a chat.
 * The stored message is unchanged.
 */
export function visibleText(raw: string, maxLength: number): ShownText {
  // A huge text is cut before any work; the factor leaves room for what is removed.
  const given = raw.slice(0, maxLength * 4 + 64)
  let text = given.replace(terminalSequence, '').replace(lineBreak, '\n').toWellFormed()
  // Normalizing can join what stood apart, and removing can too.
  for (let before = ''; before !== text;) {
    before = text
    text = text.replace(allHidden, '').normalize('NFKC').replace(piledMarks, (_, first: string) => first)
  }
  const lines = text.split('\n').map((line) => line.trimEnd())
  text = lines.filter((line) => line !== '').join('\n').trim()
  const characters = Array.from(text)
  const shown = characters.slice(0, maxLength).join('')
  return { text: shown, truncated: given.length < raw.length || characters.length > maxLength }
}

/** The same, on one line. */
export function visibleLine(raw: string, maxLength = MAX_LINE): ShownText {
  const { text, truncated } = visibleText(raw, maxLength)
  return { text: text.replace(/\s+/g, ' '), truncated }
}

/**
 * The element in which a judge or an annotator receives a message. Its name contains the nonce, everything inside is escaped, and no other
 * element of this name can be inside. Each text is cut on whole characters before it is escaped, so that no entity is split;
 * `truncated` says so to the reader.
 */
export function renderCandidate(candidate: CandidateView, { nonce, maxLength = MAX_BODY }: CandidateOptions): string {
  if (!/^[A-Za-z0-9]{8,64}$/.test(nonce)) {
    throw new HeedError('invalid_argument', 'nonce must be 8 to 64 random letters and digits.', { details: { field: 'nonce' } })
  }
  const { channel, verified, receivedAt, sender, senderName, subject, truncated = false, attachments = [] } = candidate
  const body = visibleText(candidate.text, maxLength)
  const tag = `candidate-${nonce}`
  const lines = [
    `<${tag}${attributes({ channel, verified, received_at: receivedAt })}>`,
    ...(sender === undefined ? [] : [element('sender', visibleLine(sender))]),
    ...(senderName === undefined ? [] : [element('sender-name', visibleLine(senderName))]),
    ...(subject === undefined ? [] : [element('subject', visibleLine(subject))]),
    ...attachmentLines(attachments),
    element('text', { text: body.text, truncated: body.truncated || truncated }),
    `</${tag}>`,
  ]
  return lines.join('\n')
}

function attachmentLines(attachments: NonNullable<CandidateView['attachments']>): string[] {
  const lines = attachments.slice(0, MAX_ATTACHMENTS).map(({ filename = '', mediaType, size }) => {
    return element('attachment', visibleLine(filename), { media_type: mediaType, size })
  })
  const left = attachments.length - lines.length
  return left > 0 ? [...lines, `<attachments-left-out count="${left}" truncated="true" />`] : lines
}

function element(tag: string, { text, truncated }: ShownText, more: Record<string, string | number | boolean | undefined> = {}): string {
  return `<${tag}${attributes({ ...more, truncated: truncated || undefined })}>${escapeText(text)}</${tag}>`
}

function attributes(values: Record<string, string | number | boolean | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined)
  return given.map(([name, value]) => ` ${name}="${escapeAttribute(visibleLine(String(value)).text)}"`).join('')
}

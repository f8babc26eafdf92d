import { normalizeSignal } from '../../signals/normalize.ts'
import type { Signal } from '../../signals/signal.ts'
import type { InboundRecord } from '../../store/contract/watches.ts'
import { visibleLine, visibleText } from '../candidate-text.ts'

/** As many as a stored message has. */
const maxText = 65_536
const maxAttachments = 10

/**
 * The signal with which a thread receives a message of a channel: a user's message with the id of the inbound message. The attributes are
 * what the channel knows of its origin; with them the model receives it as an element, and every text of the sender escaped. Hidden
 * characters are removed first.
 */
export function messageSignal(inbound: InboundRecord, now: number): Signal {
  const { id, kind, channelId, sender, contactId, content } = inbound
  const { text, truncated } = visibleText(content.text, maxText)
  const channel = `${kind}/${channelId}`
  return normalizeSignal(
    {
      type: 'user',
      contents: [text, ...attachmentLines(content.attachments)].filter((line) => line !== '').join('\n'),
      attributes: {
        channel,
        sender: visibleLine(sender.address).text,
        name: sender.name === undefined ? undefined : visibleLine(sender.name).text,
        verified: sender.verified,
        contact: contactId,
        subject: content.subject === undefined ? undefined : visibleLine(content.subject).text,
        truncated: truncated || content.truncated ? true : undefined,
      },
      metadata: {
        channel: { inboundId: id, channel, verified: sender.verified, ...(contactId === undefined ? {} : { contactId }) },
        taintedBy: [kind, channel],
      },
    },
    { id, now },
  )
}

/** The contents of attachments are not fetched: the model reads that there are some. */
function attachmentLines(attachments: NonNullable<InboundRecord['content']['attachments']> = []): string[] {
  const lines = attachments.slice(0, maxAttachments).map(({ filename = 'without a name', mediaType, size }) => {
    const details = [mediaType, size === undefined ? undefined : `${size} bytes`].filter((detail) => detail !== undefined)
    return `[attachment: ${[visibleLine(filename).text, ...details.map((detail) => visibleLine(detail).text)].join(', ')}]`
  })
  const left = attachments.length - lines.length
  return left > 0 ? [...lines, `[${left} more attachments]`] : lines
}

/** The text of a run as it is sent: without blanks around it, in whole characters, and at most this long. */
export function replyText(text: string, most = maxText): { text: string; truncated?: true } {
  const whole = text.toWellFormed().replaceAll('\0', '').trim()
  if (whole.length <= most) return { text: whole }
  return { text: `${whole.slice(0, most - 1).replace(/[\uD800-\uDBFF]$/, '')}…`, truncated: true }
}

import { HeedError } from '../../base/errors.ts'
import { MAX_SIGNAL_BYTES } from '../../signals/contents.ts'

/** The text as it is stored, refused where it is too long. What a `coalesceKey` joins is as long as both. */
export function sizedText(text: string, field: string): string {
  const bytes = Buffer.byteLength(text)
  if (bytes <= MAX_SIGNAL_BYTES) return text
  throw new HeedError('invalid_argument', `Invalid notification: ${field} has ${bytes} bytes, with what it joins by its coalesceKey if it has one; at most ${MAX_SIGNAL_BYTES} are taken.`, {
    details: { field, bytes, limit: MAX_SIGNAL_BYTES },
  })
}

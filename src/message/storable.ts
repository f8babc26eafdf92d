import { HeedError } from '../base/errors.ts'

/** A message as the largest signal may be. */
const maxBytes = 10 * 1024 * 1024

/** Refuses what can't be kept: what is no JSON, and what is too large. `index`: of which of the messages given. */
export function checkStorable(content: object, index: number): void {
  let text: string
  try {
    text = JSON.stringify(content)
  } catch (cause) {
    throw new HeedError('invalid_message', `messages[${index}] is no JSON and can't be stored.`, { cause, details: { index } })
  }
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return
  throw new HeedError('invalid_message', `messages[${index}] has more than ${maxBytes} bytes. Keep the file elsewhere and pass its URL.`, {
    details: { index, maxBytes },
  })
}

const alphabet = new TextEncoder().encode('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/')
const padding = '='.charCodeAt(0)

/** Written out, because `btoa` wants a string first and takes ten times as long; files are encoded while a sender waits. */
export function toBase64(bytes: Uint8Array): string {
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4)
  let end = 0
  for (let start = 0; start < bytes.length; start += 3) {
    const group = (at(bytes, start) << 16) | (at(bytes, start + 1) << 8) | at(bytes, start + 2)
    text[end++] = at(alphabet, group >> 18)
    text[end++] = at(alphabet, (group >> 12) & 63)
    text[end++] = at(alphabet, (group >> 6) & 63)
    text[end++] = at(alphabet, group & 63)
  }
  const missing = (3 - (bytes.length % 3)) % 3
  if (missing > 0) text.fill(padding, end - missing)
  return new TextDecoder().decode(text)
}

function at(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0
}

/** True for base64 and base64url, padded or not. */
export function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/_-]*={0,2}$/.test(text)
}

/** How many bytes a text takes in a store. Lone surrogates count as the replacement character does. */
export function utf8Length(text: string): number {
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    if (unit < 0x800) bytes += 1
    else if (unit >= 0xd800 && unit < 0xdc00 && isLowSurrogate(text.charCodeAt(index + 1))) {
      bytes += 2
      index++
    } else bytes += 2
  }
  return bytes
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000
}

/** Samples a second of spelled sound. */
export const spelledRate = 24_000
/** How long a character sounds, in milliseconds. */
export const spelledMs = 50

const perCharacter = (spelledRate * spelledMs) / 1_000
/** Loud enough to be taken for speech. */
const base = 8_000

/**
 * A sound that spells a text: each character is a level of its own, so that `spelledText` reads it back exactly, also after it was cut or
 * joined with others. Samples of 16 bits, little-endian, one channel, 24,000 a second.
 */
export function spelledSound(text: string): Uint8Array<ArrayBuffer> {
  const samples = new Int16Array(text.length * perCharacter)
  for (let i = 0; i < text.length; i++) samples.fill(base + text.charCodeAt(i), i * perCharacter, (i + 1) * perCharacter)
  return new Uint8Array(samples.buffer)
}

/** The text that a sound spells. Silence before, after and within it is left out. */
export function spelledText(pcm: Uint8Array): string {
  const view = new DataView(pcm.buffer, pcm.byteOffset, pcm.byteLength)
  let text = ''
  for (let at = 0; at + 1 < pcm.length;) {
    const level = view.getInt16(at, true)
    if (level < base) at += 2
    else {
      text += String.fromCharCode(level - base)
      at += 2 * perCharacter
    }
  }
  return text
}

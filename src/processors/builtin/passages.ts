/** A passage that a judge quoted, and what stands in its place. */
export interface Passage {
  text: string
  replacement: string
}

/** The passage as it stands in one of the texts. Judges read them with entities and may quote either form. Nothing where it isn't there. */
export function quotedIn(texts: readonly string[], passage: string): string | undefined {
  return [passage, unescaped(passage)].find((form) => form !== '' && texts.some((text) => text.includes(form)))
}

/**
 * The text with every passage replaced. All are looked for in the text as it was, so that nothing is found in what stands in for another; those that overlap are
 * one, and the first of them, the longest of several that begin together, says what stands in its place.
 */
export function replaced(text: string, passages: readonly Passage[]): string {
  const places = passages.flatMap((passage) => placesOf(text, passage)).sort((a, b) => a.start - b.start || b.end - a.end)
  let made = ''
  let end = 0
  for (const place of places) {
    if (place.start >= end) made += text.slice(end, place.start) + place.replacement
    end = Math.max(end, place.end)
  }
  return made + text.slice(end)
}

interface Place {
  start: number
  end: number
  replacement: string
}

function placesOf(text: string, { text: passage, replacement }: Passage): Place[] {
  const places: Place[] = []
  for (let start = text.indexOf(passage); start !== -1; start = text.indexOf(passage, start + 1)) places.push({ start, end: start + passage.length, replacement })
  return places
}

function unescaped(text: string): string {
  return text.replace(/&(?:lt|gt|quot|amp);/g, (entity) => entities[entity] ?? entity)
}

const entities: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&amp;': '&' }

/** A passage that a judge quoted, and what stands in its place. */
export interface Passage {
  text: string
  replacement: string
}

/** The passage as it stands in one of the texts. Judges read them with entities and may quote either form. Nothing where it isn't there. */
export function quotedIn(texts: readonly string[], passage: string): string | undefined {
  return [passage, unescaped(passage)].find((form) => form !== '' && texts.some((text) => text.includes(form)))
}

/** The text with every passage replaced, the longest first: one may be a part of another. */
export function replaced(text: string, passages: readonly Passage[]): string {
  const ordered = [...passages].sort((a, b) => b.text.length - a.text.length)
  return ordered.reduce((made, passage) => made.replaceAll(passage.text, () => passage.replacement), text)
}

function unescaped(text: string): string {
  return text.replace(/&(?:lt|gt|quot|amp);/g, (entity) => entities[entity] ?? entity)
}

const entities: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&amp;': '&' }

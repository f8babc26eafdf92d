/** Places in a mailbox, first and last of each unbroken row of them. */
export type Span = readonly [from: number, to: number]

/** The places of signals as a run keeps them: `3-5,9`. However many were taken at once, they are few. */
export function placesOf(mail: ReadonlyArray<{ ord: number }>): string | null {
  const [first] = mail
  if (!first) return null
  if (mail.length === 1) return `${first.ord}`
  const ords = mail.map(({ ord }) => ord).sort((a, b) => a - b)
  const spans: Array<[number, number]> = []
  for (const ord of ords) {
    const last = spans.at(-1)
    if (last && ord === last[1] + 1) last[1] = ord
    else spans.push([ord, ord])
  }
  return spans.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join()
}

export function spansOf(places: string | null): Span[] {
  if (places === null) return []
  const only = Number(places)
  if (!Number.isNaN(only)) return [[only, only]]
  return places.split(',').map((span) => {
    const [from, to = from] = span.split('-')
    return [Number(from), Number(to)]
  })
}

/** A conversation that goes on after a pause of this many milliseconds is another one, mostly. */
const pause = 6 * 3_600_000
/** A longer session is split, so that it has one topic, more or less. */
const maxPassages = 24

/**
 * The session of each passage: passages of a thread without a long pause between them. Relevant messages are in one place more often
 * than they are alone; a thread may last for years, and has many such places.
 */
export function sessionsOf(
  { count, previous, createdAt }: { readonly count: number; readonly previous: ArrayLike<number>; readonly createdAt: ArrayLike<number> },
): { session: Int32Array; sessions: number } {
  const session = new Int32Array(count)
  const sizes: number[] = []
  for (let at = 0; at < count; at += 1) {
    const before = previous[at] as number
    const of = before < 0 ? -1 : (session[before] as number)
    if (of >= 0 && (sizes[of] as number) < maxPassages && Math.abs((createdAt[at] as number) - (createdAt[before] as number)) < pause) {
      session[at] = of
      sizes[of] = (sizes[of] as number) + 1
    } else session[at] = sizes.push(1) - 1
  }
  return { session, sessions: sizes.length }
}

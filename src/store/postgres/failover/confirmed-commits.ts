import { arrayOf } from '../bulk/arrays.ts'
import type { Dialect } from '../dialect.ts'
import type { Session } from '../sessions.ts'

/** How many commits are remembered, and for how long: the server remembers them for twice as long. */
const mostCommits = 4_096
const rememberedMs = 30 * 60_000

/** The last commits of this process that the server has confirmed, by their tokens. */
export class ConfirmedCommits {
  readonly #commits = new Map<string, number>()

  add(token: string): void {
    this.#commits.set(token, Date.now())
    if (this.#commits.size <= mostCommits) return
    for (const oldest of this.#commits.keys()) {
      this.#commits.delete(oldest)
      break
    }
  }

  /** Counts those that the server does not have, and forgets all. */
  async countLost(session: Session, { schema }: Dialect): Promise<number> {
    const since = Date.now() - rememberedMs
    const tokens = [...this.#commits].flatMap(([token, at]) => (at > since ? token : []))
    const text = `SELECT count(*) AS found FROM ${schema}.heed_outcomes WHERE token = ANY($1::text[])`
    const [answer] = await session.batch([{ name: '', text, values: [arrayOf(tokens)] }])
    this.#commits.clear()
    return tokens.length - Number(answer?.rows[0]?.found)
  }
}

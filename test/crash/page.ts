import { readFileSync, writeFileSync } from 'node:fs'
import type { CampaignState } from './campaign.ts'
import type { RoundFacts, RoundResult } from './round.ts'
import type { TakeoverCost } from './takeover-cost.ts'

/** Puts the result of a whole run into its place on the page. */
export function writePage(path: string, state: CampaignState, cost: TakeoverCost): void {
  putOnPage(path, 'npm run test:crash', resultOf(state, cost))
}

/** Puts what a command found into its place on a page, in place of what it found the last time. */
export function putOnPage(path: string, command: string, result: string): void {
  const [begin, end] = [`<!-- the last result: written by ${command} -->`, `<!-- end of what ${command} wrote -->`]
  const page = readFileSync(path, 'utf8')
  const [before, rest] = page.split(begin)
  const after = rest?.split(end)[1]
  if (before === undefined || after === undefined) throw new Error(`${path} has no place for the result: it needs '${begin}' and '${end}'.`)
  writeFileSync(path, `${before}${begin}\n\n${result}\n${end}${after}`)
}

function resultOf({ seed, rounds }: CampaignState, cost: TakeoverCost): string {
  const kills = sum(rounds.flatMap((round) => Object.values(round.kills)))
  const facts = (name: keyof RoundFacts) => number(sum(rounds.map((round) => round.facts[name])))
  const broken = rounds.flatMap(({ violations }) => violations)
  return `\`npm run test:crash -- --seed ${seed}\`: ${rounds.length} databases with 1 to 4 processes at once (seeds ${rounds[0]?.seed} to ${rounds.at(-1)?.seed}).

| | |
|---|---|
| SIGKILLs | ${number(kills)} |
| SIGSTOPs beyond the lease, continued | ${number(sum(rounds.map(({ stops }) => stops)))} |
| processes that closed and handed over | ${number(sum(rounds.map(({ retired }) => retired)))} |
| sends, including repeated ones | ${facts('sent')} |
| of those confirmed by \`stored\` | ${facts('stored')} |
| model calls | ${facts('steps')} |
| tool effects | ${facts('effects')} |
| threads taken over or woken by a sweep | ${facts('takeovers')} |
| calls that the model read as interrupted or cut | ${facts('interrupted')} |
| runs parked | ${facts('parked')} |
| chunks and snapshots received by subscribers | ${facts('seen')}, ${facts('snapshots')} |
| **broken guarantees** | **${broken.length}** |
| kill points | ${points(rounds)} |

${costOf(cost)}
\`npm run test:crash -- --kills 0 --stops 0 --no-page\` measures only this.
${broken.length === 0 ? '' : `\n${broken.slice(0, 20).map(({ promise, what }) => `- ${promise}: ${what}`).join('\n')}\n`}`
}

/** What a takeover costs, in a sentence or two. */
export function costOf({ firstChunkMs, transactions, startMs }: TakeoverCost): string {
  const writes = Object.entries(transactions).map(([name, count]) => `${name} ${count}`).join(', ')
  return `Cost of a takeover, without the wait for the lease: ${Math.round(firstChunkMs)} ms from opening the file to the first chunk, in
${number(sum(Object.values(transactions)))} write transactions (${writes}). Opening the file and the first sweep take ${startMs.alone.toFixed(1)} ms on an empty
file and ${startMs.among.toFixed(1)} ms among 10,000 idle threads. The times depend on the machine; the counts do not.`
}

function points(rounds: readonly RoundResult[]): string {
  const counts: Record<string, number> = {}
  for (const { kills } of rounds) for (const [point, count] of Object.entries(kills)) counts[point] = (counts[point] ?? 0) + count
  return Object.entries(counts).toSorted(([, a], [, b]) => b - a).map(([point, count]) => `${point} ${count}`).join(', ')
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function number(value: number): string {
  return value.toLocaleString('en-US')
}

import { readFileSync, writeFileSync } from 'node:fs'
import type { CampaignState } from './campaign.ts'
import type { KindResult } from './kind.ts'
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

function resultOf({ seed, rounds, seconds }: CampaignState, cost: TakeoverCost): string {
  const broken = rounds.flatMap(({ violations }) => violations)
  const all = sum(rounds.flatMap(({ faults }) => Object.values(faults)))
  const parts = [...new Set(rounds.map(({ kind }) => kind))].map((kind) => tableOf(kind, rounds.filter((round) => round.kind === kind)))
  return `\`npm run test:crash -- --seed ${seed}\`: ${rounds.length} rounds in ${number(Math.round(seconds / 60))} minutes, **${number(all)} faults,
${broken.length} broken guarantees**.

${parts.join('\n\n')}

${costOf(cost)}
\`npm run test:crash -- --faults 0 --minutes 0 --no-page\` measures only this.
${broken.length === 0 ? '' : `\n${broken.slice(0, 20).map(({ promise, what }) => `- ${promise}: ${what}`).join('\n')}\n`}`
}

function tableOf(kind: string, rounds: readonly KindResult[]): string {
  const counted = (name: 'faults' | 'facts') => {
    const counts: Record<string, number> = {}
    for (const round of rounds) for (const [key, count] of Object.entries(round[name])) counts[key] = (counts[key] ?? 0) + count
    return Object.entries(counts).toSorted(([, a], [, b]) => b - a).map(([key, count]) => `${key} ${number(count)}`).join(', ')
  }
  return `| rounds of kind \`${kind}\` | ${rounds.length} |
|---|---|
| faults | ${counted('faults')} |
| work | ${counted('facts')} |
| broken guarantees | ${rounds.flatMap(({ violations }) => violations).length} |`
}

/** What a takeover costs, in a sentence or two. */
export function costOf({ firstChunkMs, transactions, startMs }: TakeoverCost): string {
  const writes = Object.entries(transactions).map(([name, count]) => `${name} ${count}`).join(', ')
  return `Cost of a takeover, without the wait for the lease: ${Math.round(firstChunkMs)} ms from opening the file to the first chunk, in
${number(sum(Object.values(transactions)))} write transactions (${writes}). Opening the file and the first sweep take ${startMs.alone.toFixed(1)} ms on an empty
file and ${startMs.among.toFixed(1)} ms among 10,000 idle threads. The times depend on the machine; the counts do not.`
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function number(value: number): string {
  return value.toLocaleString('en-US')
}

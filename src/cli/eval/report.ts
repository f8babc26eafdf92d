import { styleText } from 'node:util'
import type { EvalResult, EvaluatedItem, EvaluatedTurn, ScoreChange, Threshold } from '../../scorers/index.ts'

/** The most failed cases that are listed: the stored result has all of them. */
const maxFailures = 10

/** The result of an evaluation for people: a line for each scorer, the change since the last run, and the cases that failed. */
export function evalReport(name: string, result: EvalResult, changes: readonly ScoreChange[]): string {
  const { summary: { totalItems, failedItems, notScorable }, verdict, items } = result
  const judged = new Map([...result.thresholds, ...result.gates].map((one) => [one.scorerId, one]))
  const ids = [...new Set([...Object.keys(result.scores), ...judged.keys()])]
  const width = Math.max(0, ...ids.map((id) => id.length))
  const rows = ids.map((id) => {
    const asked = judged.get(id)
    const met = asked?.passed ? paint('green', 'ok') : paint('red', 'missed')
    const wanted = asked ? `  wanted ${describeThreshold(asked.threshold)}: ${met}` : ''
    return `  ${id.padEnd(width)}  ${shown(result.scores[id])}${changeOf(changes.find(({ scorerId }) => scorerId === id))}${wanted}`
  })
  const failed = items.map(({ id, errors, turns = [] }) => ({ id, errors: { ...errors, ...problemsOfTurns(turns) } }))
    .filter(({ errors }) => Object.keys(errors).length > 0)
  const failures = failed.slice(0, maxFailures).flatMap(({ id, errors }) =>
    Object.entries(errors).map(([what, { message }]) => `  ${paint('red', 'failed')} ${id}: ${what}: ${message}`))
  const counted = [
    `${totalItems} ${totalItems === 1 ? 'case' : 'cases'}`, failedItems && `${failedItems} failed`,
    notScorable && `${notScorable} without a score`,
  ]
  return [
    `${paint('bold', name)}: ${paint(verdict === 'failed' ? 'red' : 'green', verdict)} (${counted.filter(Boolean).join(', ')})`,
    ...rows, ...failures, ...(failed.length > maxFailures ? [`  and ${failed.length - maxFailures} more`] : []),
  ].join('\n')
}

/** What failed in turns, by their numbers. */
function problemsOfTurns(turns: readonly EvaluatedTurn[]): EvaluatedItem['errors'] {
  return Object.fromEntries(turns.flatMap(({ errors, missed }, index) => {
    const found = [...Object.entries(errors), ...missed.map((key) => [key, { message: 'missed' }] as const)]
    return found.map(([key, error]) => [`turn ${index + 1}: ${key}`, error] as const)
  }))
}

function changeOf(change: ScoreChange | undefined): string {
  if (!change || change.higher.length + change.lower.length === 0) return ''
  const { before, after, higher, lower, p } = change
  const difference = after - before
  const counted = `${higher.length} higher, ${lower.length} lower, p ${p.toFixed(2)}`
  return `  ${difference >= 0 ? '+' : '−'}${shown(Math.abs(difference))} since the last run (${counted})`
}

export function describeThreshold(threshold: Threshold): string {
  if (typeof threshold === 'number') return `at least ${threshold}`
  const { min, max } = threshold
  if (min === max) return `exactly ${min}`
  return [min !== undefined && `at least ${min}`, max !== undefined && `at most ${max}`].filter(Boolean).join(' and ')
}

function shown(score: number | undefined): string {
  return score === undefined ? 'none' : score.toFixed(3)
}

function paint(format: 'bold' | 'green' | 'red', text: string): string {
  return styleText(format, text, { stream: process.stdout })
}

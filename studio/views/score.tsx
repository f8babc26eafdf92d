import type { HeedClient } from 'heed/client'

export type Score = Awaited<ReturnType<HeedClient['listScores']>>['scores'][number]

/** A score as a number, or why there is none. */
export function ScoreValue({ score: { score, state } }: { score: Score }) {
  if (score !== undefined) return <b>{Number(score.toFixed(3))}</b>
  return <span className={`chip ${state === 'failed' ? 'is-lost' : ''}`}>{state.replace('_', ' ')}</span>
}

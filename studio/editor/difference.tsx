import { memo } from 'react'
import { lineDiff, wordDiff, type Piece } from '../parts/diff.ts'
import type { FieldChange } from './versions.ts'

/** Two texts, line by line; of a line that changed, the words that did. */
export const TextDifference = memo(function TextDifference({ from, to }: { from: string; to: string }) {
  return (
    <pre className="difference">
      {paired(lineDiff(from, to)).map((line, index) => (
        <Line key={index} {...line} />
      ))}
    </pre>
  )
})

interface DiffLine {
  kind: Piece['kind']
  pieces: Piece[]
}

/** A removed line and the added one in its place are compared by words. */
function paired(lines: readonly Piece[]): DiffLine[] {
  const shown: DiffLine[] = []
  const endOf = (kind: Piece['kind'], from: number) => {
    let end = from
    while (lines[end]?.kind === kind) end++
    return end
  }
  for (let at = 0; at < lines.length; ) {
    const middle = endOf('removed', at)
    const end = endOf('added', middle)
    const [before, then] = [lines.slice(at, middle), lines.slice(middle, end)]
    shown.push(...before.map((line, index) => half(line, wordDiff(line.text, then[index]?.text ?? ''), 'added', then[index])))
    shown.push(...then.map((line, index) => half(line, wordDiff(before[index]?.text ?? '', line.text), 'removed', before[index])))
    const same = lines[end]
    if (same) shown.push({ kind: 'same', pieces: [same] })
    at = same ? end + 1 : end
  }
  return shown
}

/** One of two lines that stand for each other: its own words, where any word of both is the same. */
function half(line: Piece, words: readonly Piece[], other: Piece['kind'], counterpart: Piece | undefined): DiffLine {
  const isLike = counterpart !== undefined && words.some(({ kind, text }) => kind === 'same' && text.trim().length > 1)
  return { kind: line.kind, pieces: isLike ? words.filter(({ kind }) => kind !== other) : [{ ...line, kind: 'same' }] }
}

const marks = { same: ' ', removed: '−', added: '+' }
const names = { same: '', removed: 'removed: ', added: 'added: ' }

function Line({ kind, pieces }: DiffLine) {
  return (
    <span className={`diff-line diff-${kind}`}>
      <span aria-hidden="true">{marks[kind]} </span>
      <span className="visually-hidden">{names[kind]}</span>
      {pieces.map(({ kind: of, text }, index) => (of === 'same' ? <span key={index}>{text}</span> : <mark key={index}>{text}</mark>))}
      {'\n'}
    </span>
  )
}

/** The fields that differ between two versions. */
export function Differences({ changes, none }: { changes: readonly FieldChange[]; none: string }) {
  if (changes.length === 0) return <p className="meta">{none}</p>
  return (
    <div className="differences">
      {changes.map(({ field, from, to }) => (
        <section key={field}>
          <h3>{field}</h3>
          <TextDifference from={from} to={to} />
        </section>
      ))}
    </div>
  )
}

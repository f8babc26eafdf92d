import { escapeHTML } from './highlight.ts'

interface Arrow {
  from: string
  to: string
  label: string
}

const end = '[*]'
const size = { width: 150, height: 44, gap: 70 }

/** The head of arrows, once in a page that has pictures. */
export const arrowHead = '<svg class="hidden" aria-hidden="true"><defs><marker id="arrow-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
  + 'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs></svg>'

/**
 * A state diagram in the language of Mermaid as a picture, without a library: states in a row in the order in which they are named, arrows
 * to later states above them, arrows back below. Other diagrams are an error: a page would show nothing.
 */
export function drawStates(source: string): string {
  const arrows = arrowsOf(source)
  const states = [...new Set(arrows.flatMap(({ from, to }) => [from, to]))].filter((state) => state !== end)
  const left = (state: string) => 30 + states.indexOf(state) * (size.width + size.gap)
  const levels = { above: 0, below: 0 }
  const paths: string[] = []
  const loops = new Map<string, string[]>()
  for (const { from, to, label } of arrows) {
    if (from === end || to === end) continue
    if (from === to) loops.set(from, [...(loops.get(from) ?? []), label])
    else {
      const isForward = left(to) > left(from)
      const level = isForward ? ++levels.above : ++levels.below
      paths.push(arc(left(from) + size.width / 2 + (isForward ? 14 : -14), left(to) + size.width / 2 + (isForward ? -14 : 14), isForward, level, label))
    }
  }
  const height = { above: levels.above * 26 + 30, below: Math.max(levels.below, loops.size > 0 ? 1 : 0) * 26 + 34 }
  const starts = new Set(arrows.filter(({ from }) => from === end).map(({ to }) => to))
  const ends = new Set(arrows.filter(({ to }) => to === end).map(({ from }) => from))
  const boxes = states.map((state) => {
    const x = left(state)
    const again = loops.get(state)
    const loop = again ? `<text class="self" x="${x + size.width / 2}" y="36">↻ ${escapeHTML(again.join(', '))}</text>` : ''
    const start = starts.has(state) ? `<circle cx="${x - 20}" cy="22" r="5"/><path class="arrow" d="M${x - 15},22 H${x - 2}"/>` : ''
    const name = `<text x="${x + size.width / 2}" y="${again ? 19 : 27}">${escapeHTML(state)}</text>`
    return `<rect class="${ends.has(state) ? 'last' : ''}" x="${x}" width="${size.width}" height="${size.height}" rx="8"/>${name}${loop}${start}`
  })
  const width = states.length * (size.width + size.gap)
  const described = arrows.map(({ from, to, label }) => `${from === end ? 'start' : from} to ${to === end ? 'end' : to}${label && `: ${label}`}`).join('; ')
  const view = `0 ${-height.above} ${width} ${height.above + size.height + height.below}`
  return `<figure class="states"><svg viewBox="${view}" role="img" aria-label="States. ${escapeHTML(described)}">${paths.join('')}${boxes.join('')}</svg></figure>\n`
}

function arrowsOf(source: string): Arrow[] {
  const [kind, ...lines] = source.trim().split('\n')
  if (kind?.trim() !== 'stateDiagram-v2') throw new Error(`The site draws state diagrams only, not ${kind}.`)
  return lines.filter((line) => line.trim() !== '').map((line) => {
    const [, from = '', to = '', label = ''] = /^\s*(\S+) --> ([^\s:]+)(?:: (.*))?$/.exec(line) ?? []
    if (to === '') throw new Error(`The site can't draw the line "${line}".`)
    return { from, to, label }
  })
}

/** An arrow above (forward) or below (back) the row; each on a level of its own, so that labels don't meet. */
function arc(from: number, to: number, isForward: boolean, level: number, label: string): string {
  const [edge, y] = isForward ? [0, -level * 26] : [size.height, size.height + level * 26]
  const middle = (from + to) / 2
  const path = `<path class="arrow" d="M${from},${edge} V${y} H${to} V${edge}"/>`
  return `${path}<text class="label" x="${middle}" y="${y + (isForward ? -5 : 15)}">${escapeHTML(label)}</text>`
}

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { dirname } from 'node:path'
import { number, subject, value, verdict } from './print.mjs'

/** Puts a result in the place of the last one of its name, and writes the page anew. */
export function record(result, { results, page }, cases) {
  const known = existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : { benchmarks: [] }
  const machine = { cores: availableParallelism(), cpu: cpus()[0]?.model ?? 'unknown', node: process.version }
  const byName = new Map(known.benchmarks.map((benchmark) => [benchmark.name, benchmark]))
  byName.set(result.name, { ...result, machine })
  const benchmarks = cases.flatMap(({ name }) => byName.get(name) ?? [])
  write(results, `${JSON.stringify({ benchmarks }, undefined, 2)}\n`)
  write(page, markdown(benchmarks, cases))
}

function markdown(benchmarks, cases) {
  const about = new Map(cases.map((known) => [known.name, known.about]))
  return `${[
    '# Benchmarks',
    '',
    '<!-- Written by `npm run bench`; not to be edited by hand. -->',
    '',
    'This page compares the cost of Heed with the AI SDK (`ai`: its loop) and with an established agent framework (`peer`: with its memory',
    'and its libSQL store). Their versions are pinned in `bench/package.json`. Heed is installed from its packed tarball.',
    '',
    'Compare ratios, not times: machines differ and are shared. All sides of a benchmark run alternately on one machine, each time in a new',
    'process. A ratio is the ratio of the medians; the lowest and highest single rounds are in brackets. CPU time includes all threads of a',
    'process. To run one benchmark: `npm run bench -- --only idle-send`.',
    ...benchmarks.flatMap((benchmark) => section(benchmark, about.get(benchmark.name))),
  ].join('\n')}\n`
}

function section({ name, title, date, rounds, machine, sides, comparisons }, about) {
  return [
    '',
    `## ${title}`,
    '',
    ...(about === undefined ? [] : [...wrapped(about), '']),
    '| compared | result | wanted | |',
    '|---|---|---|---|',
    ...comparisons.map((comparison) => `| ${subject(comparison)} | ${value(comparison)} | ${wanted(comparison)} | ${verdict(comparison)} |`),
    '',
    ...measured(sides),
    '',
    `\`--only ${name}\`: ${date.slice(0, 10)}, ${rounds} ${rounds === 1 ? 'round' : 'rounds'}, Node ${machine.node.slice(1)}, ${machine.cores} cores.`,
  ]
}

/** The lines of a paragraph, at most 138 characters each. */
function wrapped(text) {
  return text.split(' ').reduce((lines, word) => {
    const last = lines.pop()
    if (last === undefined) return [word]
    return `${last} ${word}`.length <= 138 ? [...lines, `${last} ${word}`] : [...lines, last, word]
  }, [])
}

function measured(sides) {
  const measures = [...new Set(Object.values(sides).flatMap((side) => Object.keys(side)))]
  return [
    `| measured | ${Object.keys(sides).join(' | ')} |`,
    `|---|${Object.keys(sides).map(() => '---|').join('')}`,
    ...measures.map((measure) => `| ${measure} | ${Object.values(sides).map((side) => (side[measure] ? number(side[measure].median) : '')).join(' | ')} |`),
  ]
}

function wanted({ atMost, atLeast, unit = '' }) {
  if (atMost !== undefined) return `≤ ${number(atMost)}${unit}`
  return atLeast === undefined ? '' : `≥ ${number(atLeast)}${unit}`
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The progress, for the person at the terminal. Not part of the result. */
export function progress(text) {
  process.stderr.write(`${text}\n`)
}

export function table(result) {
  const sides = Object.entries(result.sides).flatMap(([side, measures]) =>
    Object.entries(measures).map(([measure, { median, min, max }]) => `    ${side} ${measure}: ${number(median)} (${number(min)} to ${number(max)})`))
  const comparisons = result.comparisons.map((comparison) =>
    `    ${subject(comparison)}: ${value(comparison)}${target(comparison)}`)
  return [result.title, ...sides, ...comparisons, ''].join('\n')
}

export function subject({ measure, of, to }) {
  return to === undefined ? `${of}, ${measure}` : `${of} / ${to}, ${measure}`
}

export function value({ median, min, max, unit = '' }) {
  const range = min === max ? '' : ` (${number(min)} to ${number(max)})`
  return `${number(median)}${unit}${range}`
}

export function target(comparison) {
  const { atMost, atLeast, unit = '', ok } = comparison
  if (ok === undefined) return ''
  return `, wanted ${atMost === undefined ? `at least ${number(atLeast)}` : `at most ${number(atMost)}`}${unit}: ${verdict(comparison)}`
}

/** A ratio that some rounds put on the other side of what is wanted says so. */
export function verdict({ ok, steady }) {
  if (ok === undefined) return ''
  return `${ok ? 'ok' : 'MISS'}${steady ? '' : ', not in every round'}`
}

/** Three significant digits: no benchmark here is more exact than that. */
export function number(value) {
  if (Number.isInteger(value)) return String(value)
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)))
}

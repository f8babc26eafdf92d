import { median } from '../../harness/median.mjs'
import { expect, input } from '../../harness/side.mjs'
import { callParts, instantModel, textParts } from '../../instant-model.mjs'

const span = 10

/**
 * Runs of `input.steps` tool calls and a last word, and what their first and last ten steps cost. A step is timed from one model call to
 * the next, which leaves out how a run begins and ends.
 *
 * @param side whose number of runs
 * @param start runs once with the model that it is given, to the end
 */
export async function growth(side, start) {
  const { steps } = input
  const warmup = input.warmup[side]
  const runs = input.runs[side]
  const first = []
  const last = []
  for (let run = 0; run < warmup + runs; run++) {
    const marks = []
    const onCall = (index) => {
      if (index === 0 || index === span || index === steps - span || index === steps) marks.push(process.cpuUsage())
    }
    await start(instantModel((index) => (index < steps ? callParts(index) : textParts(1)), { onCall }))
    expect('marks', marks.length, 4)
    if (run < warmup) continue
    first.push(milliseconds(marks[0], marks[1]))
    last.push(milliseconds(marks[2], marks[3]))
  }
  return { 'first ten': median(first), 'last ten': median(last), growth: median(last) / median(first) }
}

function milliseconds(from, to) {
  return (to.user + to.system - from.user - from.system) / 1_000
}

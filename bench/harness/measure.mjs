import { fork } from 'node:child_process'
import { join } from 'node:path'
import { progress } from './print.mjs'

/**
 * Runs the sides of a benchmark in turns, each time in a process of its own: whatever else the machine does meets all of them alike.
 * Answers, for each side, one sample of numbers a round.
 */
export async function measure(benchmark, { folder, heedProject, work, quick, rounds }) {
  const size = quick ? 'quick' : 'full'
  const samples = Object.fromEntries(benchmark.sides.map((side) => [side, []]))
  const count = rounds ?? benchmark.rounds[size]
  for (let round = 0; round < count; round++) {
    for (const side of benchmark.sides) {
      progress(`  round ${round + 1} of ${count}: ${side}`)
      const script = join(folder, benchmark.name, `${side}.mjs`)
      samples[side].push(await sampleOf(script, { ...benchmark.input?.[size], heedProject }, work))
    }
  }
  return samples
}

const timeoutMs = 20 * 60_000

function sampleOf(script, input, work) {
  return new Promise((resolve, reject) => {
    // What a side leaves in the temporary folder goes with the runner's.
    const env = { ...process.env, TMPDIR: work }
    const child = fork(script, [JSON.stringify(input)], { env, stdio: ['ignore', 'ignore', 'pipe', 'ipc'], timeout: timeoutMs })
    let sample
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said = (said + text).slice(-4_000)
    })
    child.on('message', (message) => {
      sample = message
    })
    child.on('error', reject)
    child.on('close', (code) => {
      if (sample && code === 0) resolve(sample)
      else reject(new Error(`${script} ended with ${code} and ${sample ? 'a' : 'no'} sample.\n${said}`))
    })
  })
}

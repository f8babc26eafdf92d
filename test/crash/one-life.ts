import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** How a process ended: `signal` if it was killed, and what it wrote. */
export interface Ended {
  signal: string | null
  output: string
}

/** Runs a program with a plan, which says where it kills itself, to its end. Rejects if it failed. */
export async function live(program: string, plan: object): Promise<Ended> {
  const child = spawn(process.execPath, [program, JSON.stringify(plan)], { stdio: ['ignore', 'pipe', 'pipe'] })
  let [output, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (code !== null && code !== 0) throw new Error(`The process failed with ${code}: ${errors}`)
  return { signal, output }
}

/** A number below the limit: the same one each time for a seed. */
export function below(limit: number, seed: number): number {
  return (Math.imul(seed ^ 0x5f3759df, 1_664_525) + 1_013_904_223 >>> 8) % limit
}

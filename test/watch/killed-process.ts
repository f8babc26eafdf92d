import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Longer than every claim and lease: what the process before had taken is due. */
export const shiftMs = 200_000

/** Runs `watch-process.ts`, in the so manieth life of its file. Returns how it ended. */
export async function live(file: string, point: string, { nth, life }: { nth: number; life: number }): Promise<string> {
  const program = join(import.meta.dirname, 'watch-process.ts')
  const given = [file, point, String(nth), String(life * shiftMs), ...(life === 0 ? ['first'] : [])]
  const child = spawn(process.execPath, [program, ...given], { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (code !== null && code !== 0) throw new Error(`The process failed with ${code}: ${errors}`)
  return signal ?? 'done'
}

import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const program = join(import.meta.dirname, '../../src/cli/command-line.ts')

interface Ended {
  code: number | null
  output: string
  errors: string
}

export interface RunOptions {
  cwd?: string
  /** Added to an environment without variables of Heed. */
  env?: Record<string, string>
  input?: string
}

/** A `heed` that runs, without a terminal. */
export class HeedProcess {
  readonly child: ChildProcessWithoutNullStreams
  output = ''
  errors = ''
  readonly ended: Promise<Ended>

  constructor(args: readonly string[], { cwd, env, input }: RunOptions = {}) {
    const { FORCE_COLOR: _force, NO_COLOR: _no, HEED_URL: _url, HEED_API_KEY: _key, PORT: _port, ...rest } = process.env
    this.child = spawn(process.execPath, [program, ...args], { ...(cwd === undefined ? {} : { cwd }), env: { ...rest, ...env } })
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => void (this.output += text))
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => void (this.errors += text))
    // The process may end before it reads.
    this.child.stdin.on('error', () => {})
    this.child.stdin.end(input ?? '')
    this.ended = once(this.child, 'close').then(([code]) => ({ code: code as number | null, output: this.output, errors: this.errors }))
  }

  /** Ends it, and all that it started: for the end of a test. */
  async end(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL')
    await this.ended
  }
}

/** Runs `heed` to its end. */
export function heed(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return new HeedProcess(args, options).ended
}

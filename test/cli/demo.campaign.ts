import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { providerServer } from '../../src/testing/index.ts'
import { userMessages } from '../../src/cli/demo-script.ts'

const program = join(import.meta.dirname, '../../src/cli/demo.ts')
let folder: string

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'heed-demo-test-'))))
afterEach(() => rmSync(folder, { recursive: true }))

interface Played {
  code: number | null
  output: string
  errors: string
}

/** Runs the demo without a terminal, in an environment with nothing but `env`. Ctrl-C is pressed at `stopAt`. */
async function play(args: string[], env: Record<string, string> = {}, stopAt?: string): Promise<Played> {
  const child = spawn(process.execPath, [program, ...args], {
    env: { TMPDIR: folder, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const played: Played = { code: null, output: '', errors: '' }
  let stopped = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    played.output += text
    if (stopped || stopAt === undefined || !played.output.includes(stopAt)) return
    stopped = true
    child.kill('SIGINT')
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (played.errors += text))
  await once(child, 'close')
  return { ...played, code: child.exitCode }
}

/** Expects each of the texts after the one before it. */
function expectInOrder(output: string, landmarks: readonly string[]): void {
  let from = 0
  for (const landmark of landmarks) {
    const at = output.indexOf(landmark, from)
    expect(at, `'${landmark}' after ${JSON.stringify(output.slice(Math.max(0, from - 80), from))}`).toBeGreaterThan(-1)
    from = at + landmark.length
  }
}

describe('npm start', () => {
  it('shows a run that is steered, asks for approval and is followed by a queued one, and ends', async () => {
    const { code, output, errors } = await play(['--fast'])
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expectInOrder(output, [
      'set OPENAI_API_KEY or ANTHROPIC_API_KEY',
      'docs/agents.md',
      'run 1',
      userMessages.first,
      'run_tests {"version":"2.1.0"}',
      `you  ${userMessages.steer}`,
      `you  ${userMessages.followUp}`,
      'run_tests = {"passed":214,"failed":0}',
      `step 2  ${userMessages.steer}`,
      'to stable only.',
      'asks  May it deploy {"version":"2.1.0","channels":["stable"]}?',
      'deploy = {"live":["stable"]}',
      '2.1.0 is live on stable.',
      'run 2',
      userMessages.followUp,
      'explain',
      '(entered a run at its step 2; consumed)',
      '(started a run; consumed)',
    ])
    expect(output).not.toContain('\u001B')
    expect(readdirSync(folder)).toEqual([])
  })

  it("uses a provider's own package when its key is set", async () => {
    await using server = await providerServer({
      script: [
        { toolCalls: [{ toolName: 'run_tests', input: { version: '2.1.0' } }] },
        { toolCalls: [{ toolName: 'deploy', input: { version: '2.1.0', channels: ['stable'] } }] },
        'It is out.',
        'Team: it is out.',
      ],
    })
    const { baseURL, apiKey } = server.openai
    const { code, output, errors } = await play([], { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL })
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expectInOrder(output, ['because OPENAI_API_KEY is set', `step 2  ${userMessages.steer}`, 'May it deploy', 'It is out.'])
    expectInOrder(output, ['run 2', userMessages.followUp, 'Team: it is out.'])
    expect(server.requests.map(({ body }) => body.model)).toEqual(Array.from({ length: 4 }, () => 'gpt-5.5'))
  })

  it('sends its messages also to a model that calls no tools', async () => {
    await using server = await providerServer({ script: ['It can.', 'Without beta, then.', 'Team: it can.'] })
    const { baseURL, apiKey } = server.anthropic
    const { code, output } = await play([], { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_BASE_URL: baseURL })
    expect(code).toBe(0)
    expectInOrder(output, ['run 1', 'It can.', 'run 2', userMessages.steer, 'Without beta, then.'])
    expectInOrder(output, ['run 3', userMessages.followUp, 'Team: it can.'])
  })

  it('prints an error in one line, without a stack', async () => {
    await using server = await providerServer({ script: [{ error: { status: 401, message: 'This key is not valid.' } }] })
    const { baseURL, apiKey } = server.openai
    const { code, errors } = await play([], { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL })
    expect(code).toBe(1)
    expect(errors).toContain('This key is not valid.')
    expect(errors.trim().split('\n')).toHaveLength(1)

    const missing = await play(['--model', 'openai/gpt-5.5'])
    expect(missing.code).toBe(1)
    expect(missing.errors).toBe("Model 'openai/gpt-5.5' needs a key. Set the environment variable OPENAI_API_KEY.\n")

    const unknown = await play(['--slow'])
    expect(unknown).toMatchObject({ code: 1, output: '' })
    expect(unknown.errors).toMatch(/^Unknown option '--slow'.*\n$/)
  })

  it('ends cleanly on Ctrl-C', async () => {
    await using server = await providerServer({ script: [{ text: 'Let me think', hang: true }] })
    const { baseURL, apiKey } = server.openai
    const { code, errors } = await play([], { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL }, 'Let me think')
    expect({ code, errors }).toEqual({ code: 130, errors: '' })
    expect(readdirSync(folder)).toEqual([])
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildProgram } from '../crash/program.ts'

let folder = ''
let program = ''
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'heed-workflow-scale-'))
  program = await buildProgram(folder, undefined, '../workflow/scale-process.ts')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function begin(plan: object) {
  const child = spawn(process.execPath, [program, JSON.stringify(plan)], { stdio: ['pipe', 'pipe', 'pipe'] })
  let [output, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended = once(child, 'close').then(([code, signal]) => {
    if (code !== null && code !== 0) throw new Error(`The process failed with ${String(code)}: ${errors}`)
    return { signal: signal as string | null, answer: output === '' ? undefined : (JSON.parse(output) as Record<string, unknown>) }
  })
  const ready = async () => {
    await expect.poll(() => errors).toContain('ready')
  }
  return { child, ended, ready }
}

const live = (plan: object) => begin(plan).ended
const effects = (file: string) => readFileSync(`${file}.effects`, 'utf8').trim().split('\n')

describe('large runs of workflows', () => {
  it.skipIf(process.platform !== 'linux')('[F4.8] a step of a run of 1,000 writes as many bytes at its end as at its beginning', async () => {
    const { answer } = await live({ file: join(folder, 'series.db'), task: 'series' })
    const { status, early, late } = answer as { status: string; early: number; late: number }
    expect(status).toBe('success')
    expect(early).toBeGreaterThan(10_000)
    expect(late / early).toBeLessThan(1.1)
    expect(late / early).toBeGreaterThan(0.9)
  })

  it('[F4.9] a list of 10,000 elements goes on after a kill in its middle, and repeats nothing that was done', async () => {
    const file = join(folder, 'list.db')
    expect((await live({ file, task: 'list', killAt: 5_000 })).signal).toBe('SIGKILL')
    const { answer } = await live({ file, task: 'list' })
    expect(answer).toMatchObject({ status: 'success', result: (10_000 * 9_999) / 2 + 10_000 })
    const keys = effects(file)
    expect(new Set(keys).size).toBe(10_000)
    // Those that ran when the process was killed: idempotent steps run again, with the same key.
    expect(keys.length - 10_000).toBeLessThan(100)
    expect(answer?.calls).toBeLessThan(5_100)
  })

  it('[F4.1] of ten processes that resume one step at once one goes on, and nine get the same answer', async () => {
    const file = join(folder, 'ask.db')
    expect((await live({ file, task: 'ask' })).answer).toMatchObject({ status: 'suspended' })
    const processes = Array.from({ length: 10 }, () => begin({ file, task: 'answer' }))
    await Promise.all(processes.map(({ ready }) => ready()))
    for (const { child } of processes) child.stdin.end('go\n')
    const answers = (await Promise.all(processes.map(({ ended }) => ended))).map(({ answer }) => answer)
    const [winner, ...others] = answers.filter((answer) => answer?.code === undefined)
    expect(others).toEqual([])
    expect(winner?.result).toBe(String(winner?.pid))
    expect(answers.flatMap((answer) => answer?.code ?? [])).toEqual(Array.from({ length: 9 }, () => 'run_not_suspended'))
    expect(effects(file)).toHaveLength(1)
  })
})

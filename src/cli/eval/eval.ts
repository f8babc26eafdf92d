import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { ProgressBar } from '../../base/progress-bar.ts'
import { isObject } from '../../base/json.ts'
import type * as Scorers from '../../scorers/index.ts'
import { findUserFile, importBeside, importUserFile, loadEnvironment, shownFile } from '../serve/user-module.ts'
import { exitCodes, Failure, wrongUsage, type ExitCode } from '../shell/failure.ts'
import type { Output } from '../shell/output.ts'
import { junitReport } from './junit.ts'
import { evalReport } from './report.ts'

export interface EvalCommand {
  file: string | undefined
  only: readonly string[]
  results: string | undefined
  concurrency: string | undefined
  envFile: string | undefined
  /** The file that gets the results as JUnit XML. */
  junit: string | undefined
}

const defaultFiles = ['evals.ts', 'evals.js', 'evals.mjs']

type Evals = Record<string, Scorers.RunEvalsOptions<never, unknown>>

/** Runs the evaluations of a file one after the other, and stores and compares their results. */
export async function runEvalFile(command: EvalCommand, output: Output): Promise<ExitCode> {
  const concurrency = readCount(command.concurrency)
  const named = command.file ?? defaultFiles.find((name) => existsSync(name)) ?? defaultFiles[0]
  const file = findUserFile(named, process.cwd(), 'your evaluations')
  loadEnvironment(command.envFile)
  const exported = await importUserFile(file)
  const evals = chosen(readEvals(exported, file), command.only)
  const scorers = await importBeside<typeof Scorers>(file, 'heed/scorers', () => import('../../scorers/index.ts'))
  const folder = resolve(command.results ?? '.heed/evals')
  let missed = false
  const results: Array<[string, Scorers.EvalResult]> = []
  for (const [name, options] of Object.entries(evals)) {
    const before = await readResult(folder, name)
    const result = await runWithProgress(scorers, name, { ...options, ...(concurrency === undefined ? {} : { concurrency }) })
    const changes = before ? scorers.compareEvals(before, result) : []
    const { scores, summary, thresholds, gates, verdict } = result
    output.answer(evalReport(name, result, changes), { type: 'eval', name, scores, summary, thresholds, gates, verdict, changes })
    await storeResult(folder, name, result)
    results.push([name, result])
    missed ||= verdict === 'failed'
  }
  if (command.junit !== undefined) await replaceFile(resolve(command.junit), junitReport(results))
  return missed ? exitCodes.problems : exitCodes.done
}

function readCount(text: string | undefined): number | undefined {
  if (text === undefined || /^[1-9]\d{0,3}$/.test(text)) return text === undefined ? undefined : Number(text)
  throw wrongUsage(`--concurrency must be a number from 1 to 9999, and is '${text}'.`)
}

function readEvals({ evals, default: byDefault }: Record<string, unknown>, file: string): Evals {
  const found = evals ?? byDefault
  const all = isObject(found) ? Object.values(found) : []
  if (all.length > 0 && all.every((one) => isObject(one) && 'target' in one)) return found as Evals
  throw new Failure(exitCodes.failed, `${shownFile(file)} exports no evaluations.`, {
    code: 'no_evals', place: shownFile(file),
    remedy: 'Export options of runEvals() by name: export const evals = { tone: { target, data, scorers } }',
  })
}

function chosen(evals: Evals, only: readonly string[]): Evals {
  const unknown = only.find((name) => !Object.hasOwn(evals, name))
  if (unknown !== undefined) throw wrongUsage(`there is no evaluation '${unknown}'.`, `The file has: ${Object.keys(evals).join(', ')}`)
  return only.length === 0 ? evals : Object.fromEntries(Object.entries(evals).filter(([name]) => only.includes(name)))
}

async function runWithProgress(scorers: typeof Scorers, name: string, options: Evals[string]): Promise<Scorers.EvalResult> {
  const bar = process.stderr.isTTY ? new ProgressBar((text) => process.stderr.write(text)) : undefined
  try {
    return await scorers.runEvals<never>({
      ...options,
      onItemComplete: (item, progress) => {
        bar?.show(name, progress)
        options.onItemComplete?.(item, progress)
      },
    })
  } finally {
    bar?.clear()
  }
}

/** The result of the last run; undefined before the first. */
async function readResult(folder: string, name: string): Promise<Scorers.EvalResult | undefined> {
  const path = resultFile(folder, name)
  if (!existsSync(path)) return undefined
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Scorers.EvalResult
  } catch (error) {
    throw new Failure(exitCodes.failed, `${shownFile(path)} is not a result of heed eval.`, {
      cause: error, remedy: 'Remove it, or name another folder with --results.',
    })
  }
}

/** A run that is killed leaves the result before it. */
async function storeResult(folder: string, name: string, result: Scorers.EvalResult): Promise<void> {
  await replaceFile(resultFile(folder, name), `${JSON.stringify(result, undefined, 2)}\n`)
}

async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.new`, text)
  await rename(`${path}.new`, path)
}

function resultFile(folder: string, name: string): string {
  return join(folder, `${encodeURIComponent(name)}.json`)
}

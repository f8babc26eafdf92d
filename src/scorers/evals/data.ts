import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { checkNames, refused } from '../../base/arguments.ts'
import { describe, HeedError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import { isAsyncIterable } from '../../base/promises.ts'
import type { AgentInput } from '../../message/read/input.ts'
import type { ExpectedStep, ScorerLike } from '../contract.ts'

/** One case of an evaluation. */
export interface EvalItem<Input = AgentInput> {
  /** Names the case, so that runs can be compared after the data was changed. Defaults to its place, from 1. */
  id?: string
  /** What the target receives. */
  input?: Input
  /** For agents, in place of `input`: the turns of a conversation. Scorers get the answer to the last one, and the others as history. */
  turns?: ReadonlyArray<AgentInput | EvalTurn>
  /** The answer that is expected, for scorers that compare. */
  groundTruth?: unknown
  /** The steps that are expected, for scorers of tool calls and of trajectories. */
  expectedTrajectory?: readonly ExpectedStep[]
  /** Values of the request context of the call. */
  requestContext?: Record<string, unknown>
  /** For workflows: the state that the run begins with. */
  startOptions?: { initialState?: unknown }
}

/** A turn with scorers of its own. */
export interface EvalTurn {
  input: AgentInput
  scorers?: ReadonlyArray<ScorerLike | ScorerFunction>
  /** Scorers whose score of this turn must be 1. */
  gates?: ReadonlyArray<ScorerLike | ScorerFunction>
  groundTruth?: unknown
  expectedTrajectory?: readonly ExpectedStep[]
}

/** A scorer as a function, in the form of `autoevals`: texts go in, and `score: null` means that there is none. */
export type ScorerFunction = (run: { input: string; output: string; expected?: string }) => FunctionScore | Promise<FunctionScore>

/** What a scorer in the form of a function returns. */
export interface FunctionScore {
  name: string
  score: number | null
  metadata?: Record<string, unknown>
}

export function isEvalTurn(turn: AgentInput | EvalTurn): turn is EvalTurn {
  return isObject(turn) && 'input' in turn && !('role' in turn)
}

/** Cases as they are, as they arrive, or in a file with one JSON object a line. */
export type EvalData<Input = AgentInput> = Iterable<EvalItem<Input>> | AsyncIterable<EvalItem<Input>> | { file: string }

const itemNames = ['id', 'input', 'turns', 'groundTruth', 'expectedTrajectory', 'requestContext', 'startOptions']

/** The cases, checked, in their order. */
export async function readItems<Input>(data: EvalData<Input>): Promise<Array<EvalItem<Input> & { id: string }>> {
  const items: Array<EvalItem<Input> & { id: string }> = []
  const ids = new Set<string>()
  for await (const item of iterate(data)) {
    const place = `data[${items.length}]`
    checkNames(place, item, itemNames)
    const { id = String(items.length + 1), input, turns } = item
    if (typeof id !== 'string' || id === '' || ids.has(id)) throw refused(`id of ${place}`, 'a text that no other case has')
    if ((input === undefined) === (turns === undefined)) throw refused(place, 'a case with input, or with turns')
    if (turns !== undefined && (!Array.isArray(turns) || turns.length === 0)) throw refused(`turns of ${place}`, 'a list of messages')
    for (const [index, turn] of (turns ?? []).entries())
      if (isEvalTurn(turn)) checkNames(`${place}.turns[${index}]`, turn, ['input', 'scorers', 'gates', 'groundTruth', 'expectedTrajectory'])
    if (item.startOptions !== undefined) checkNames(`startOptions of ${place}`, item.startOptions, ['initialState'])
    checkTrajectory(place, item.expectedTrajectory)
    ids.add(id)
    items.push({ ...item, id })
  }
  if (items.length === 0) throw refused('data', 'at least one case')
  return items
}

function checkTrajectory(place: string, expected: unknown): void {
  const isStep = (step: unknown) => isObject(step) && typeof step.name === 'string'
  if (expected !== undefined && !(Array.isArray(expected) && expected.every(isStep)))
    throw refused(`expectedTrajectory of ${place}`, 'a list of steps with their names')
}

function iterate<Input>(data: EvalData<Input>): Iterable<EvalItem<Input>> | AsyncIterable<EvalItem<Input>> {
  if (isAsyncIterable(data)) return data as AsyncIterable<EvalItem<Input>>
  if (typeof data === 'object' && data !== null && Symbol.iterator in data) return data
  if (isObject(data) && typeof data.file === 'string') return readLines(data.file)
  throw refused('data', 'a list of cases, an iterable of them, or { file } with one JSON object a line')
}

async function* readLines<Input>(file: string): AsyncIterable<EvalItem<Input>> {
  let number = 0
  const lines = createInterface({ input: createReadStream(file, 'utf8'), crlfDelay: Infinity })
  try {
    for await (const line of lines) {
      number++
      if (line.trim() !== '') yield parseLine<Input>(line, `${file}:${number}`)
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new HeedError('invalid_argument', `There is no file ${file}.`, { cause: error })
  } finally {
    lines.close()
  }
}

function parseLine<Input>(line: string, place: string): EvalItem<Input> {
  try {
    return JSON.parse(line) as EvalItem<Input>
  } catch (error) {
    throw new HeedError('invalid_argument', `${place} is not JSON: ${describe(error)}`, { cause: error })
  }
}

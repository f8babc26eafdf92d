import { copyPlain, isObject } from '../base/json.ts'
import type { Usage } from '../message/chunk.ts'
import { joinRows } from '../message/join.ts'
import type { MessageRow } from '../message/row.ts'
import type { ScoreRow } from '../store/contract/scores.ts'
import type { RunRow, ThreadStore } from '../store/contract/threads.ts'
import type { AgentScorerInput, ScorerRun } from './contract.ts'
import type { Message } from '../message/message.ts'

/** The most rows of a run that are scored. */
const maxRows = 2_000
/** Most runs append a few rows, and the thread may have many of later runs: the first page is short. */
const firstRows = 8
const pageRows = 200

export interface StoredRun {
  run: RunRow
  scored: ScorerRun<AgentScorerInput, Message[]>
}

/** A run with its input, its answer and what its first prompt had, as they are stored. Undefined where they were deleted. */
export async function readStoredRun(store: ThreadStore, { threadId, resourceId, runId }: ScoreRow): Promise<StoredRun | undefined> {
  const scope = { threadId, resourceId }
  const thread = await store.getThread(scope)
  const run = thread && (await store.getRun(scope, runId))
  const prompt = run && (await store.readPrompt(scope, runId, 0))
  const last = prompt?.rows.at(-1)
  if (!run || !prompt || last?.seq === undefined) return undefined
  const input = prompt.rows.filter((row) => row.runId === runId)
  const added = [...input, ...(await rowsOfRun(store, scope, runId, last.seq))]
  const output = joinRows(added.filter((row) => row.role === 'assistant'))
  const { rows, head } = prompt
  return {
    run,
    scored: {
      runId,
      input: onDemand<AgentScorerInput>({
        inputMessages: () => joinRows(input.filter(isInput)),
        rememberedMessages: () => joinRows(rows.filter((row) => row.runId !== runId)),
        systemMessages: () => (head ? systemTexts(head.text) : []),
      }),
      output,
      ...(run.endedAt !== undefined && run.usage
        ? { metrics: { durationMs: run.endedAt - run.startedAt, usage: run.usage as object as Usage, steps: run.step } }
        : {}),
    },
  }
}

/** A step of a run of a workflow, as it is stored. Undefined where it was deleted. */
export async function readStoredStep(
  store: ThreadStore, { threadId, resourceId, runId }: ScoreRow, path: string,
): Promise<(Pick<ScorerRun, 'input' | 'output'> & { runId: string; requestContext: Record<string, unknown> }) | undefined> {
  const run = await store.getWorkflowRun({ threadId, resourceId })
  const step = run?.steps.find((row) => row.path === path)
  if (!run || !step) return undefined
  const { requestContext } = run.head
  return { runId, input: step.input, output: step.output, requestContext: isObject(requestContext) ? requestContext : {} }
}

/** The run for one scorer, as a copy. What the scorer does not read is not copied. */
export function copyForScorer({ scored }: StoredRun): ScorerRun<AgentScorerInput, Message[]> {
  const { input, output, metrics, ...rest } = scored
  return {
    ...rest,
    input: onDemand<AgentScorerInput>({
      inputMessages: () => copyMessages(input.inputMessages),
      rememberedMessages: () => copyMessages(input.rememberedMessages),
      systemMessages: () => [...input.systemMessages],
    }),
    output: copyMessages(output),
    ...(metrics ? { metrics: copyPlain(metrics) } : {}),
  }
}

function copyMessages(messages: readonly Message[]): Message[] {
  return messages.map((message) => ({ ...copyPlain(message), createdAt: new Date(message.createdAt) }))
}

/** An object whose fields are made when they are first read. */
function onDemand<T extends object>(makers: { [Key in keyof T]: () => T[Key] }): T {
  const object = {} as T
  for (const key of Object.keys(makers) as Array<keyof T>) {
    const set = (value: T[keyof T]) => Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true })
    const get = () => {
      const value = makers[key]()
      set(value)
      return value
    }
    Object.defineProperty(object, key, { get, set, enumerable: true, configurable: true })
  }
  return object
}

/** The rows that a run appended after its first prompt. The rows of the next run follow them. */
async function rowsOfRun(
  store: ThreadStore, scope: { threadId: string; resourceId: string }, runId: string, after: number,
): Promise<MessageRow[]> {
  const found: MessageRow[] = []
  for (let limit = firstRows; found.length < maxRows; limit = pageRows) {
    const { rows, more } = await store.listRows(scope, { after: found.at(-1)?.seq ?? after, limit })
    const own = rows.filter((row) => row.runId === runId)
    found.push(...own)
    if (!more || own.length < rows.length) break
  }
  return found
}

function isInput({ role }: MessageRow): boolean {
  return role === 'user' || role === 'signal'
}

function systemTexts(head: string): string[] {
  const { system } = JSON.parse(head) as { system: ReadonlyArray<{ content: string }> }
  return system.map(({ content }) => content)
}

import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../base/clock.ts'
import { HeedError } from '../../base/errors.ts'
import { silentLogger } from '../../base/logger.ts'
import { toRows } from '../../message/read/input.ts'
import { joinRows } from '../../message/join.ts'
import type { ToolInvocationPart } from '../../message/message.ts'
import type { MessageRow } from '../../message/row.ts'
import { ProcessorPipeline } from '../../processors/pipeline.ts'
import type { Processor } from '../../processors/processor.ts'
import * as fromRows from '../../prompt/from-rows.ts'
import { scriptedModel } from '../../testing/index.ts'
import type { Chunk } from '../../message/chunk.ts'
import { runLoop } from './loop.ts'
import type { LanguageModel } from '../model/model.ts'
import type { AgentExecutionOptions } from '../options.ts'
import { RequestContext } from '../request-context.ts'
import { Run } from './run.ts'
import type { RunCommit, RunHost, RunSetup } from './run-contract.ts'
import { createTool } from '../tools/tool.ts'
import { resolveTools, type ToolsInput } from '../tools/tool-set.ts'

vi.mock('../../prompt/from-rows.ts', { spy: true })

let ids = 0
const newId = () => `id-${++ids}`

/** A host that records commits and chunks, and returns `waiting` rows when it is drained. */
class Recorder implements RunHost {
  readonly lanes = []
  readonly log: string[] = []
  readonly commits: RunCommit[] = []
  readonly chunks: Chunk[] = []
  readonly waiting: MessageRow[][] = []
  refuse: HeedError | undefined

  emit(chunk: Chunk): void {
    this.chunks.push(chunk)
    this.log.push(chunk.type)
  }

  async commit(commit: RunCommit) {
    if (this.refuse) throw this.refuse
    this.commits.push(commit)
    const { started, drain, end, rows } = commit
    const what = [...rows.map((row) => row.role), ...(started ? [`started ${started.join()}`] : []), ...(end ? [end.status] : [])]
    this.log.push(`commit ${what.join(' ')}`)
    const entered = drain ? this.waiting.splice(0) : []
    return { entered, ended: end !== undefined && entered.length === 0 }
  }

  async reviseInput(): Promise<void> {}

  async history() {
    return []
  }

  async laneRows() {
    return { rows: [], left: 0 }
  }
}

async function start(
  model: LanguageModel,
  given: { tools?: ToolsInput; options?: AgentExecutionOptions; processors?: Processor[]; host?: Recorder; rows?: MessageRow[] } = {},
) {
  const rows = given.rows ?? toRows('Go.', { newId, now: () => new Date(0) })
  const setup: RunSetup = {
    id: 'run-1',
    agent: { id: 'a', name: 'A' },
    requestContext: new RequestContext(),
    options: given.options ?? {},
    models: [{ model, maxRetries: 0 }],
    system: [],
    tools: await resolveTools([{ from: 'the test', tools: given.tools ?? {} }]),
    structured: undefined,
    processors: new ProcessorPipeline(given.processors ?? [], given.processors ?? [], 3),
    context: [],
    transform: undefined,
    reservedTags: [],
    clock: systemClock,
    logger: silentLogger,
    newId,
    rows,
    inputCount: rows.length,
    stepsDone: 0,
  }
  const host = given.host ?? new Recorder()
  return { host, run: new Run(setup, host) }
}

describe('what the loop commits, and when', () => {
  it('[G1.2] is the output of the model before its tools start, then their results, then the end', async () => {
    const model = scriptedModel([{ text: 'Look.', toolCalls: [{ toolName: 'look' }, { toolName: 'look' }] }, 'Done.'])
    const { host, run } = await start(model, {
      tools: { look: createTool({ id: 'look', execute: async () => void host.log.push('tool runs') }) },
    })
    await runLoop(run)
    expect(host.log.filter((line) => /^(commit|tool runs|step-finish|finish|tool-result)/.test(line))).toEqual([
      'commit assistant started call_0_0,call_0_1',
      'tool runs',
      'tool runs',
      'tool-result',
      'tool-result',
      'commit tool',
      'step-finish',
      'commit assistant finished',
      'step-finish',
      'finish',
    ])
    expect(host.commits.map((commit) => [commit.step, commit.drain ?? false])).toEqual([[0, false], [0, true], [1, true]])
  })

  it('[G1.2] starts no tool when that commit failed', async () => {
    const host = new Recorder()
    const { run } = await start(scriptedModel([{ toolCalls: [{ toolName: 'look' }] }]), {
      host,
      tools: { look: createTool({ id: 'look', execute: async () => void host.log.push('tool runs') }) },
      processors: [{ id: 'p', processOutputStep: () => void (host.refuse = new HeedError('fenced', 'gone')) }],
    })
    await expect(runLoop(run)).rejects.toMatchObject({ code: 'fenced' })
    expect(host.log).not.toContain('tool runs')
    // Another process has the thread: this run publishes nothing more.
    expect(host.log.at(-1)).toBe('tool-call')
  })

  it('is only the end of a rejected run', async () => {
    const { host, run } = await start(scriptedModel(['Hi.']), {
      processors: [{ id: 'p', processOutputResult: ({ abort }) => abort('No.') }],
    })
    await runLoop(run)
    expect(host.commits).toEqual([{ step: 0, rows: [], end: { status: 'rejected', tripwire: { reason: 'No.', processorId: 'p' } } }])
  })

  it('is the partial answer of an aborted run', async () => {
    const { host, run } = await start(scriptedModel([{ text: ['Once ', 'upon'], hang: { parts: 2 } }]))
    const emit = host.emit.bind(host)
    host.emit = (chunk) => {
      emit(chunk)
      if (chunk.type === 'text-delta') run.abort(new Error('enough'))
    }
    await runLoop(run)
    expect(host.commits).toMatchObject([
      {
        rows: [{ role: 'assistant', content: { parts: [{ text: 'Once ' }], metadata: { incomplete: 'aborted' } } }],
        end: { status: 'aborted' },
      },
    ])
  })

  it('is the error of a failed run, for transcripts', async () => {
    const { host, run } = await start(scriptedModel([{ error: { status: 400, message: 'bad' } }]))
    await runLoop(run)
    expect(host.commits).toMatchObject([
      {
        rows: [{ role: 'assistant', content: { parts: [{ type: 'error', error: { code: 'provider_error' } }] } }],
        end: { status: 'failed' },
      },
    ])
    expect(fromRows.promptOf(host.commits[0]?.rows ?? [])).toEqual([])
  })
})

describe('input that enters', () => {
  const inputRows = (text: string) => toRows(text, { newId, now: () => new Date(0) })

  it('[P1.2] is stored after the results of the step, and the run continues with it instead of ending', async () => {
    const model = scriptedModel(['Hi.', 'Ho.'])
    const { host, run } = await start(model)
    host.waiting.push(inputRows('And this?'), inputRows('And that?'))
    const result = await runLoop(run)
    expect(result.steps.map((step) => step.text)).toEqual(['Hi.', 'Ho.'])
    expect(model.calls[1]?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'user'])
    expect(JSON.stringify(model.calls[1]?.prompt).startsWith(JSON.stringify(model.calls[0]?.prompt).slice(0, -1))).toBe(true)
    const finishes = host.chunks.filter((chunk) => chunk.type === 'step-finish')
    expect(finishes.map((chunk) => chunk.payload.stepResult.isContinued)).toEqual([true, false])
    expect(host.chunks.filter((chunk) => chunk.type === 'finish')).toHaveLength(1)
    expect(new Set(result.messages.map(({ id }) => id)).size).toBe(2)
  })

  it('is seen by processors before the model sees it', async () => {
    const seen: number[] = []
    const model = scriptedModel(['Hi.', 'Ho.'])
    const { host, run } = await start(model, { processors: [{ id: 'p', processInput: ({ messages }) => void seen.push(messages.length) }] })
    host.waiting.push(inputRows('And this?'))
    await runLoop(run)
    expect(seen).toEqual([1, 1])
  })
})

describe('messages', () => {
  it('end when input is stored after them: no two have the same id', async () => {
    const model = scriptedModel([{ toolCalls: [{ toolName: 'read' }] }, { toolCalls: [{ toolName: 'look' }] }, 'Done.'])
    const read = createTool({ id: 'read', execute: async (_, { sendSignal }) => sendSignal({ type: 'reactive', contents: 'Rules.' }) })
    const look = createTool({ id: 'look', execute: async () => 'seen' })
    const { host, run } = await start(model, { tools: { read, look } })
    await runLoop(run)
    const stored = joinRows(host.commits.flatMap((commit) => commit.rows))
    expect(stored.map((message) => message.role)).toEqual(['assistant', 'signal', 'assistant'])
    expect(new Set(stored.map(({ id }) => id)).size).toBe(3)
    const ids = host.chunks
      .filter((chunk) => chunk.type === 'step-start' || chunk.type === 'step-finish')
      .map((chunk) => chunk.payload.messageId)
    const [first, second] = [stored[0]?.id, stored[2]?.id]
    expect(ids).toEqual([first, first, second, second, second, second])
  })
})

describe('a run that continues after a suspension', () => {
  it('[G1.1] puts late results right after their calls, before signals that the run sent to itself in the meantime', async () => {
    const step = { toolCalls: [{ toolName: 'read' }, { toolName: 'pay' }] }
    const tools = {
      read: createTool({ id: 'read', execute: async (_, { sendSignal }) => sendSignal({ type: 'reactive', contents: 'Rules.' }) }),
      pay: createTool({ id: 'pay', requireApproval: true, execute: async () => 'paid' }),
    }
    const first = await start(scriptedModel([step]), { tools })
    expect((await runLoop(first.run)).finishReason).toBe('suspended')
    const { rows } = first.run
    expect(rows.map((row) => row.role)).toEqual(['user', 'assistant', 'tool', 'signal'])

    const model = scriptedModel(['Paid.', 'Really.'])
    const { host, run } = await start(model, { tools, rows: structuredClone(rows) })
    const part = rows[1]?.content.parts.find(
      (candidate) => candidate.type === 'tool-invocation' && candidate.toolInvocation.toolName === 'pay',
    ) as ToolInvocationPart
    host.waiting.push(toRows('Really?', { newId, now: () => new Date(0) }))
    await runLoop(run, { calls: [{ part, decision: { approved: true } }] })
    expect(model.calls[0]?.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user', 'user'])
    expect(model.calls[0]?.prompt[3]).toMatchObject({ content: [{ toolName: 'pay', output: { value: 'paid' } }] })
    expect(JSON.stringify(model.calls[0]?.prompt)).not.toContain('interrupted')
    // A prompt that is made from the stored rows has the same bytes.
    const again = await start(scriptedModel([]), { tools, rows: structuredClone(run.rows.slice(0, -1)) })
    expect(again.run.history.prompt([])).toEqual(model.calls[0]?.prompt)

    const stored = joinRows(run.rows)
    expect(new Set(stored.map(({ id }) => id)).size).toBe(stored.length)
    expect(stored[1]?.content.parts).toMatchObject([
      {},
      { toolInvocation: { state: 'result' } },
      { toolInvocation: { state: 'result', result: 'paid' } },
    ])
  })
})

describe('a long run', () => {
  it('converts each row once: no prompt is made again from the start', async () => {
    const steps = 300
    const model = scriptedModel(({ index }) => (index < steps - 1 ? { toolCalls: [{ toolName: 'look' }] } : 'Done.'))
    const { run } = await start(model, {
      tools: { look: createTool({ id: 'look', execute: async () => 'seen' }) },
      options: { maxSteps: steps },
    })
    const made = vi.mocked(fromRows.modelMessagesOf)
    made.mockClear()
    await runLoop(run)
    expect(model.callCount).toBe(steps)
    // One for the input, one for the output of each step, one for the results of its tools. No prompt has the output of the last step.
    expect(made.mock.calls).toHaveLength(2 * steps - 1)
    const last = model.calls.at(-1)?.prompt ?? []
    expect(last).toHaveLength(2 * steps - 1)
  })
})

import { Agent, createTool, Memory, type Processor } from '../../../src/index.ts'
import type { Chance } from '../../../src/store/conformance/fixture.ts'
import type { EffectFile } from '../effects.ts'
import type { JournalWriter } from '../journal.ts'
import type { KillSwitch } from '../kill-points.ts'
import { pause, RestlessModel } from '../restless-model.ts'

/**
 * What a deploy changes: `whole` has both agents and all tools; `fewer-tools` lacks tools that calls may wait for; `one-agent` lacks the
 * agent `second`, whose runs may be left behind.
 */
export const versions = ['whole', 'fewer-tools', 'one-agent'] as const
export type Version = (typeof versions)[number]

interface Parts {
  chance: Chance
  journal: JournalWriter
  effects: EffectFile
  kill: KillSwitch
  /** The longest time that `hold` runs if it is not aborted, in milliseconds. */
  holdMs: number
  /** The tools that the model calls, each as often as it is named. */
  calls: readonly string[]
}

interface CallContext {
  threadId?: string
  runId: string
  toolCallId: string
}

/** The agents of a process, by the version that was deployed to it. */
export function agentsOf(version: Version, parts: Parts): { worker: Agent; second?: Agent } {
  const worker = agent('worker', version, parts)
  return version === 'one-agent' ? { worker } : { worker, second: agent('second', version, parts) }
}

function agent(id: string, version: Version, parts: Parts): Agent {
  const { chance, journal, effects, kill, holdMs, calls } = parts
  const begin = (tool: string, idempotent: boolean, { threadId = '', runId, toolCallId }: CallContext) => {
    const call = { thread: threadId, run: runId, call: toolCallId, tool, idempotent }
    effects.begun(call)
    kill.at('tool:begun')
    return () => {
      effects.done(call)
      kill.at('tool:done')
      return { done: toolCallId }
    }
  }
  const effect = async (tool: string, idempotent: boolean, context: CallContext) => {
    const done = begin(tool, idempotent, context)
    await pause(chance.below(12))
    return done()
  }
  const look = createTool({ id: 'look', idempotent: true, execute: (_, context) => effect('look', true, context) })
  const order = createTool({ id: 'order', execute: (_, context) => effect('order', false, context) })
  const sign = createTool({ id: 'sign', requireApproval: true, execute: (_, context) => effect('sign', false, context) })
  const ask = createTool({
    id: 'ask',
    execute: (_, context) => (context.resumeData === undefined ? context.suspend({ question: 'Go on?' }) : effect('ask', false, context)),
  })
  // Runs for long, unless it is aborted; some ignore that.
  const hold = createTool({
    id: 'hold',
    async execute(_, context) {
      const done = begin('hold', false, context)
      const aborted = aborting(context.abortSignal).then(() => journal.write({ note: 'let-go', thread: context.threadId ?? '' }))
      const deaf = holdMs < 5_000 && chance.below(6) === 0
      await Promise.race([pause(holdMs), ...(deaf ? [] : [aborted.then(() => pause(chance.below(10)))])])
      return done()
    },
  })
  const all = { look, order, sign, ask, hold }
  return new Agent({
    id,
    instructions: 'Work.',
    model: new RestlessModel(chance, journal, kill, calls),
    tools: version === 'fewer-tools' ? { look, hold } : all,
    outputProcessors: [guard(chance)],
    memory: new Memory({ lastMessages: 100_000, semanticRecall: false }),
  })
}

/** Holds the end of some runs for a while. */
function guard(chance: Chance): Processor {
  return {
    id: 'guard',
    async processOutputResult() {
      if (chance.below(3) === 0) await pause(10 + chance.below(30))
    },
  }
}

function aborting(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

import { Agent, createTool, Memory } from '../../src/index.ts'
import type { Chance } from '../../src/store/conformance/fixture.ts'
import type { EffectFile } from './effects.ts'
import type { JournalWriter } from './journal.ts'
import type { KillSwitch } from './kill-points.ts'
import { pause, RestlessModel } from './restless-model.ts'

/** The agent under fire. What its tools do is written by them to a file; only `look` may have them twice. */
export function worker(chance: Chance, journal: JournalWriter, effects: Pick<EffectFile, 'begun' | 'done'>, kill: KillSwitch): Agent {
  const effect = async (tool: string, idempotent: boolean, { threadId = '', runId, toolCallId }: { threadId?: string; runId: string; toolCallId: string }) => {
    const call = { thread: threadId, run: runId, call: toolCallId, tool, idempotent }
    effects.begun(call)
    kill.at('tool:begun')
    await pause(chance.below(12))
    effects.done(call)
    kill.at('tool:done')
    return { done: toolCallId }
  }
  const look = createTool({ id: 'look', idempotent: true, execute: (_, context) => effect('look', true, context) })
  const order = createTool({ id: 'order', execute: (_, context) => effect('order', false, context) })
  const sign = createTool({ id: 'sign', requireApproval: true, execute: (_, context) => effect('sign', false, context) })
  const ask = createTool({
    id: 'ask',
    execute: (_, context) => (context.resumeData === undefined ? context.suspend({ question: 'Go on?' }) : effect('ask', false, context)),
  })
  return new Agent({
    id: 'worker',
    instructions: 'Work.',
    model: new RestlessModel(chance, journal, kill),
    tools: { look, order, sign, ask },
    // The window is never cut: every prompt of a thread has to begin with the one before.
    memory: new Memory({ lastMessages: 100_000, semanticRecall: false }),
  })
}

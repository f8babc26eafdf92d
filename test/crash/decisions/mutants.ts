import type { KindPlan, KindResult, Mutant } from '../kind.ts'
import { DecisionRound, wholeRound, type RoundSize } from './round.ts'

const narrow = (size: Partial<RoundSize>) => (plan: KindPlan): Promise<KindResult> => new DecisionRound(plan, { ...wholeRound, ...size }).run()

/** Without processes that end: what the deciders themselves show. */
const undisturbed = narrow({ ends: 4, sends: 8, losses: 4 })
const nested = narrow({ ends: 4, sends: 8, losses: 0, aborts: 0, focus: 'below' })
const aborted = narrow({ ends: 6, sends: 8, losses: 0, focus: 'beside' })
const doubled = narrow({ ends: 4, sends: 8, losses: 0, focus: 'same' })
const overtaken = narrow({ ends: 4, sends: 8, losses: 2 })

export const mutants: Record<string, Mutant> = {
  'decides by the id of a call what its agent below asks next': {
    fault: { file: 'store/contract/decisions.ts', changes: [['named.length > 1 || (approvalId === undefined && call.again)', 'named.length > 1']] },
    finds: ['trueAnswers'],
    rare: true,
    run: nested,
  },
  'shows the arguments of the call above in a request': {
    fault: { file: 'run/tools/tool-execution.ts', changes: [['const own = child ? request && { ...request, path: [this.#run.agent.id, ...request.path] } : this.#request()', 'const own = this.#request()']] },
    finds: ['shownRan', 'trueAnswers', 'oneDecision'],
    run: nested,
  },
  'shows the path of the agent below without those above it': {
    fault: { file: 'run/tools/tool-execution.ts', changes: [['request && { ...request, path: [this.#run.agent.id, ...request.path] }', 'request']] },
    finds: ['shownRan'],
    run: nested,
  },
  'accepts any digest': {
    fault: { file: 'store/contract/decisions.ts', changes: [['if (digest !== undefined && call.request && digest !== call.request.digest) {', 'if (digest === \'none\') {']] },
    finds: ['trueAnswers'],
    run: undisturbed,
  },
  'takes a decided call for begun when its run is continued again': {
    fault: {
      file: 'thread/runtime/run-rows.ts',
      changes: [['const begun = run.started.includes(toolCallId)', 'const begun = decision ? run.attempts > 1 && decision.approved !== false : run.started.includes(toolCallId)']],
    },
    finds: ['settled'],
  },
  'does not store that a decided call has begun': {
    fault: { file: 'run/tools/tool-execution.ts', changes: [['this.#call.begun ? this.#run.host.beforeTool?.() : this.#beginning().then(() => this.#run.host.beforeTool?.())', 'this.#run.host.beforeTool?.()']] },
    finds: ['begunFirst', 'noEffectTwice'],
    run: undisturbed,
  },
  'leaves calls marked as begun that a close kept from beginning': {
    fault: { file: 'run/tools/tool-calls.ts', changes: [['if (run.isLost(failures[0])) await withdrawBegun(run, calls)', '']] },
    finds: ['settled'],
    run: narrow({ ends: 8, sends: 4, aborts: 0, losses: 0, only: 'close' }),
  },
  'begins calls that need approval before they have it': {
    fault: { file: 'run/tools/tool-calls.ts', changes: [['return !run.options.requireToolApproval && (!resolved || needsNoApproval(resolved.tool))', 'return true']] },
    finds: ['settled'],
    run: narrow({ ends: 8, sends: 6, aborts: 0, losses: 0, only: 'suspend:before' }),
  },
  'leaves the ids of a provider as they are': {
    fault: { file: 'run/step/stream-step.ts', changes: [['recorder.identify(toV4Part(value))', 'toV4Part(value)']] },
    slow: true,
    finds: ['settled', 'wholePrompts'],
    run: doubled,
  },
  'puts its own ids of calls into prompts': {
    fault: {
      file: 'prompt/from-rows.ts',
      changes: [
        ['const { toolCallId, providerCallId = toolCallId, toolName, args } = part.toolInvocation', 'const { toolCallId, toolName, args } = part.toolInvocation\n      const providerCallId = toolCallId'],
        ['const { toolCallId, providerCallId = toolCallId, toolName } = invocation', 'const { toolCallId, toolName } = invocation\n  const providerCallId = toolCallId'],
      ],
    },
    finds: ['wholePrompts'],
    run: doubled,
  },
  'gives results of calls with one id in the order in which they came': {
    fault: { file: 'prompt/open-calls.ts', changes: [['if (followsOpenCall(open, call)) {', 'if (open === undefined) {']] },
    finds: ['wholePrompts'],
    run: doubled,
  },
  'answers `accepted` to a decision whose first attempt was lost, whatever was decided': {
    fault: {
      file: 'store/core/suspend.ts',
      changes: [[
        'throw notSuspended(tables, thread, decision, `no call ${decision.approvalId ?? decision.toolCallId} waits for a decision`)',
        'return calls[0] as SuspendedCall',
      ], [
        "throw notSuspended(tables, thread, decision, 'it has no suspended run that the decision matches')",
        "return { runId: thread.runId ?? '', toolCallId: decision.toolCallId ?? '', agentId: '', made: { ...decision, at: tables.now() }, parents: [], children: [] }",
      ]],
    },
    finds: ['trueAnswers', 'oneDecision'],
    run: overtaken,
  },
  'answers a repeated decision with a new one': {
    fault: { file: 'store/core/suspend.ts', changes: [['if (earlier) return earlier', 'if (earlier) return { ...earlier, made: { ...earlier.made, at: tables.now() } }']] },
    finds: ['trueAnswers'],
    run: overtaken,
  },
  'does not tell a later decider what was decided': {
    fault: { file: 'store/core/suspend.ts', changes: [['const made = earlierMade(tables, thread, decision)', 'const made = undefined']] },
    finds: ['refusedTruly'],
    run: undisturbed,
  },
  'decides a request on the thread above and on the one below': {
    fault: { file: 'store/core/child-threads.ts', changes: [['if (!below || below.thread.resourceId !== thread.resourceId) {', 'if (below || !below) {']] },
    finds: ['oneDecision', 'trueAnswers', 'refusedTruly'],
    run: nested,
  },
  'keeps the decision about a request on one of its threads alone': {
    fault: { file: 'store/core/child-threads.ts', changes: [['if (made) recordMade(tables, parent, run, call.toolCallId, made)', ''], ['recordMade(tables, below.thread, run, below.call.toolCallId, made)', '']] },
    finds: ['refusedTruly'],
    run: nested,
  },
  'runs what was declined': {
    fault: { file: 'run/tools/tool-execution.ts', changes: [['if (decision?.approved === false && !decision.child) return this.#denied()', '']] },
    finds: ['declinedNeverRan'],
    run: undisturbed,
  },
  'says of a call that waited when its run was aborted that it was stopped': {
    fault: { file: 'run/tools/tool-calls.ts', changes: [["kind === 'approval' && !child", "kind === ''"], ['if (hasRun || decision?.child) return failed', 'if (call) return failed']] },
    finds: ['settled'],
    run: aborted,
  },
  'gives the thread of an agent below an id that callers can take': {
    fault: { file: 'store/contract/thread-row.ts', changes: [['return `${parent}/${escapeSlashes(toolCallId)}`', 'return `${parentId}/${toolCallId}`']] },
    finds: ['settled', 'ownThreads'],
    run: nested,
  },
}

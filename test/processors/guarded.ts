import { Agent, createTool, Memory, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

/** Where a guardrail may refuse. */
export const places = [
  'input', 'mid-run input', 'input step', 'state', 'tool result', 'output stream', 'output step', 'output result', 'output result after an approval', 'output result with a sub-agent',
] as const
export type Place = (typeof places)[number]
type At = Exclude<Place, 'mid-run input' | `${string} after an approval` | `${string} with a sub-agent`>

export const thread = { threadId: 't', resourceId: 'u' }
/** Where the agent is asked that another asks. */
export const below = { threadId: 't/asks', resourceId: 'u' }

/** What starts the run that is refused at a place. */
export function startOf(place: Place): string {
  return place === 'input' ? 'FORBIDDEN at the start.' : 'Go.'
}

/** The hook that refuses there. */
function hookOf(place: Place): At {
  if (place === 'mid-run input') return 'input'
  return place === 'output result after an approval' || place === 'output result with a sub-agent' ? 'output result' : place
}

/** Approves what the agent waits for, from now on. */
export async function approving(agent: Agent): Promise<void> {
  const { stream } = await agent.subscribeToThread(thread)
  for await (const chunk of stream) if (chunk.type === 'tool-call-approval') await agent.sendToolApproval({ ...thread, approved: true })
}

/**
 * An agent that does a step with tools, one of which keeps something in mind, and then says what is forbidden, and a guardrail that refuses it at one place.
 * A lane receives every step. `refusing` is called as the guardrail is about to refuse.
 */
export function guarded(place: Place, refusing: () => void | Promise<void> = () => {}) {
  const check = async (at: At, words: string, abort: (reason: string) => never): Promise<undefined> => {
    if (hookOf(place) !== at || !words.includes('FORBIDDEN')) return
    await refusing()
    abort('refused')
  }
  const guard: Processor = {
    id: 'guard',
    processInput: ({ messages, abort }) => check('input', JSON.stringify(messages), abort),
    processInputStep: ({ messages, abort }) => check('input step', JSON.stringify(messages), abort),
    computeStateSignal: ({ messages, abort }) => check('state', JSON.stringify(messages), abort),
    processToolResult: ({ result, abort }) => check('tool result', JSON.stringify(result), abort),
    processOutputStream: ({ part, abort }) => (part.type === 'text-delta' ? check('output stream', part.payload.text, abort) : undefined),
    processOutputStep: ({ text, abort }) => check('output step', text, abort),
    processOutputResult: ({ result, abort }) => check('output result', result.text, abort),
  }
  const steps: Processor = { id: 'steps', computeStateSignal: ({ runId, stepNumber }) => ({ cacheKey: `${runId}/${stepNumber}`, contents: `step ${stepNumber}` }) }
  const asks = place === 'output result with a sub-agent' ? { toolName: 'agent-sub', toolCallId: 'asks', input: { prompt: 'Is it FORBIDDEN?' } } : { toolName: 'look' }
  const model = scriptedModel(({ prompt }) => {
    // Not a state, nor what memory shows.
    const asked = prompt.findLastIndex(({ role, content }) => role === 'user' && !/"text":"</.test(JSON.stringify(content)))
    if (!JSON.stringify(prompt[asked]).includes('Go.')) return 'Fine.'
    if (prompt.slice(asked).some(({ role }) => role === 'tool')) return { text: ['It is ', 'FORBIDDEN.'] }
    return { text: 'Looking.', toolCalls: [asks, { toolName: 'updateWorkingMemory', input: { memory: '# Kept in mind' } }] }
  })
  const look = createTool({
    id: 'look',
    idempotent: true,
    requireApproval: place === 'output result after an approval',
    async execute() {
      if (place === 'mid-run input') await agent.sendMessage({ id: 'mid', contents: 'FORBIDDEN in the middle.' }, thread).stored
      return place === 'input step' || place === 'state' || place === 'tool result' ? 'FORBIDDEN to see' : 'seen'
    },
  })
  const sub = new Agent({ id: 'sub', description: 'Knows what is forbidden.', model: scriptedModel(() => 'It is FORBIDDEN.') })
  const memory = new Memory({ workingMemory: { enabled: true, scope: 'thread' } })
  const agent: Agent = new Agent({ id: 'a', model, tools: { look }, agents: { sub }, inputProcessors: [guard, steps], outputProcessors: [guard], memory })
  return { agent, model, agents: { agent, sub } }
}

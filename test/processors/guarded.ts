import { Agent, createTool, Memory, type Processor } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'

/** Where a guardrail may refuse. */
export const places = ['input', 'mid-run input', 'output stream', 'output step', 'output result'] as const
export type Place = (typeof places)[number]

export const thread = { threadId: 't', resourceId: 'u' }

/** What starts the run that is refused at a place. */
export function startOf(place: Place): string {
  return place === 'input' ? 'FORBIDDEN at the start.' : 'Go.'
}

/**
 * An agent that does a step with tools, one of which keeps something in mind, and then says what is forbidden, and a guardrail that refuses it at one place.
 * A lane is told of every step. `refusing` is called as the guardrail is about to refuse.
 */
export function guarded(place: Place, refusing: () => void | Promise<void> = () => {}) {
  const check = async (at: Place, words: string, abort: (reason: string) => never) => {
    if (!place.endsWith(at) || !words.includes('FORBIDDEN')) return
    await refusing()
    abort('refused')
  }
  const guard: Processor = {
    id: 'guard',
    processInput: ({ messages, abort }) => check('input', JSON.stringify(messages), abort),
    processOutputStream: ({ part, abort }) => (part.type === 'text-delta' ? check('output stream', part.payload.text, abort) : undefined),
    processOutputStep: ({ text, abort }) => check('output step', text, abort),
    processOutputResult: ({ result, abort }) => check('output result', result.text, abort),
  }
  const steps: Processor = { id: 'steps', computeStateSignal: ({ runId, stepNumber }) => ({ cacheKey: `${runId}/${stepNumber}`, contents: `step ${stepNumber}` }) }
  const model = scriptedModel(({ prompt }) => {
    // Not a state, nor what memory shows.
    const asked = prompt.findLastIndex(({ role, content }) => role === 'user' && !/"text":"</.test(JSON.stringify(content)))
    if (!JSON.stringify(prompt[asked]).includes('Go.')) return 'Fine.'
    if (prompt.slice(asked).some(({ role }) => role === 'tool')) return { text: ['It is ', 'FORBIDDEN.'] }
    return { text: 'Looking.', toolCalls: [{ toolName: 'look' }, { toolName: 'updateWorkingMemory', input: { memory: '# Kept in mind' } }] }
  })
  const look = createTool({
    id: 'look',
    idempotent: true,
    async execute() {
      if (place === 'mid-run input') await agent.sendMessage({ id: 'mid', contents: 'FORBIDDEN in the middle.' }, thread).stored
      return 'seen'
    },
  })
  const memory = new Memory({ workingMemory: { enabled: true, scope: 'thread' } })
  const agent: Agent = new Agent({ id: 'a', model, tools: { look }, inputProcessors: [guard, steps], outputProcessors: [guard], memory })
  return { agent, model }
}

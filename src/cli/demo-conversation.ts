import type { Agent } from '../agent/agent.ts'
import { silentLogger } from '../base/logger.ts'
import { Heed } from '../heed/heed.ts'
import type { ModelConfig } from '../run/model/model.ts'
import type { Storage } from '../store/contract/storage.ts'
import { releaseAgent } from './demo-agent.ts'
import { userMessages } from './demo-script.ts'
import type { ThreadView } from './render.ts'

interface Stage {
  model: ModelConfig
  storage: Storage
  /** How long a tool takes. */
  workMs: number
  view: ThreadView
  /** Undefined when the input has ended without an answer. */
  approve(question: string): Promise<boolean | undefined>
  /** Ends the conversation. */
  signal: AbortSignal
}

/** The ids of the two messages that are sent while the agent works, and of the run that answers the second. */
interface Sent {
  steer: string
  followUp: string
  lastRun: string
}

const thread = { resourceId: 'demo-user', threadId: 'release-2.1.0' }

/** One thread from its first message to the last answer, with a steer during a run, an approval and a queued message. */
export async function converse({ view, signal, approve, storage, ...desk }: Stage): Promise<void> {
  const agent = releaseAgent({ ...desk, whileTestsRun: interject })
  // The demo prints a failed run itself.
  const heed = new Heed({ agents: { agent }, storage, logger: silentLogger })
  let sent: Sent | undefined

  async function interject(): Promise<void> {
    if (sent) return
    const steer = agent.sendMessage(userMessages.steer, thread)
    const followUp = agent.queueMessage(userMessages.followUp, thread)
    sent = { steer: steer.signal.id, followUp: followUp.signal.id, lastRun: followUp.runId }
    await Promise.all([steer.stored, followUp.stored])
    view.line('you', 'you', userMessages.steer, '(sent now: waits for the step to end)')
    view.line('you', 'you', userMessages.followUp, '(queued: a run of its own)')
  }

  const subscription = await agent.subscribeToThread(thread)
  const leave = () => subscription.unsubscribe()
  signal.addEventListener('abort', leave, { once: true })
  const follow = async (): Promise<void> => {
    for await (const chunk of subscription.stream) {
      view.show(chunk)
      if (chunk.type === 'error') throw new Error(chunk.payload.error.message)
      if (chunk.type === 'tool-call-approval') {
        const { toolCallId, toolName, args } = chunk.payload
        const approved = await approve(`May it ${toolName} ${JSON.stringify(args)}?`)
        if (approved === undefined) return
        await agent.sendToolApproval({ ...thread, toolCallId, approved, declineContext: { reason: 'Not today.' } })
      }
      if (chunk.type !== 'finish') continue
      if (chunk.runId === sent?.lastRun) return
      // The model ran no tests, so the messages are not sent yet.
      await interject()
    }
  }
  try {
    // Chunks are shown as they arrive, also before the message is stored.
    await Promise.all([agent.sendMessage(userMessages.first, thread).stored, follow()])
    if (sent && !signal.aborted) await showOutcomes(agent, view, sent)
  } finally {
    signal.removeEventListener('abort', leave)
    subscription.unsubscribe()
    await heed.close()
  }
}

/** Shows what became of the two messages, from `explain()`. */
async function showOutcomes(agent: Pick<Agent, 'explain'>, view: ThreadView, { steer, followUp }: Sent): Promise<void> {
  view.heading('explain')
  for (const [text, signalId] of [[userMessages.steer, steer], [userMessages.followUp, followUp]] as const) {
    const explained = await agent.explain({ ...thread, signalId })
    const how = explained?.route === 'deliver' ? `entered a run at its step ${(explained.step ?? 0) + 1}` : 'started a run'
    view.line('you', 'you', text, `(${how}; ${explained?.state})`)
  }
}

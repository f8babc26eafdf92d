import { text as readAll } from 'node:stream/consumers'
import type { AgentClient, SendAnswer, SendTarget, ThreadSubscription } from '../../client/index.ts'
import type { ChunkError } from '../../message/chunk.ts'
import type { MessageInput } from '../../signals/signal.ts'
import { exitCodes, Failure, wrongUsage, type ExitCode } from '../shell/failure.ts'
import type { Output } from '../shell/output.ts'
import { explained, talkTo, withResource, type NamedServer } from './server.ts'

export interface SendArguments extends NamedServer {
  thread: string
  /** Read from standard input if it is missing or `-`. */
  text: string | undefined
  queue: boolean
  interrupt: boolean
  id: string | undefined
  wait: string | undefined
}

/** Sends a message to a thread, and waits for as much as `wait` says. */
export async function send(args: SendArguments, output: Output): Promise<ExitCode> {
  if (args.queue && args.interrupt) throw wrongUsage('--queue waits for the run to end, and --interrupt cuts it: give one of them.')
  const contents = await contentsOf(args.text)
  const talk = await talkTo(args, args.thread)
  try {
    return await withResource(talk, async (resource) => {
      const target = { threadId: args.thread, ...resource }
      // Subscribed before the send, so that no chunk of the answer is missed.
      const subscription = args.wait === 'answer' ? await talk.agent.subscribeToThread(target) : undefined
      try {
        const sent = await sendTo(talk.agent, contents, target, args)
        if (isRefused(sent)) return report(sent, args, output)
        if (!subscription) return report(sent, args, output)
        return await printAnswer(subscription, sent.outcome?.runId ?? sent.runId, output)
      } finally {
        subscription?.unsubscribe()
      }
    })
  } catch (error) {
    throw explained(error)
  }
}

async function contentsOf(text: string | undefined): Promise<string> {
  if (text !== undefined && text !== '-') return text
  if (process.stdin.isTTY) throw wrongUsage('name the TEXT, or pipe it in.')
  const read = (await readAll(process.stdin)).trimEnd()
  if (read === '') throw wrongUsage('name the TEXT, or pipe it in.')
  return read
}

function sendTo(agent: AgentClient, contents: string, target: SendTarget, how: SendArguments): Promise<SendAnswer> {
  const { queue, interrupt, id, wait } = how
  const message: MessageInput = id === undefined ? contents : { contents, id }
  const waiting = wait === 'outcome' || (wait === 'answer' && !queue) ? ({ wait: 'outcome' } as const) : {}
  if (queue) return agent.queueMessage({ message, ...target, ...waiting })
  return agent.sendMessage({ message, ...target, ...waiting, ...(interrupt ? { ifActive: { behavior: 'interrupt' as const } } : {}) })
}

function isRefused({ outcome }: SendAnswer): boolean {
  return outcome?.action === 'rejected' || outcome?.action === 'discarded'
}

/** One line: what became of the message. */
function report(sent: SendAnswer, { thread }: SendArguments, output: Output): ExitCode {
  const { runId, signal, outcome, duplicate } = sent
  if (outcome && isRefused(sent)) {
    const { action, reason, code } = outcome
    throw new Failure(exitCodes.notAccepted, `the message was ${action}${reason === undefined ? '.' : `: ${reason}`}`, {
      code: code ?? action, details: { outcome, signalId: signal.id },
    })
  }
  const became = outcome ? `${outcome.action}${outcome.step === undefined ? '' : `, step ${outcome.step}`}` : 'stored'
  const isRepeated = duplicate === true
  const facts = { thread, signalId: signal.id, runId: outcome?.runId ?? runId, duplicate: isRepeated, ...(outcome ? { outcome } : {}) }
  const text = `${became}${isRepeated ? ' (it was sent before)' : ''}: signal ${signal.id}, run ${facts.runId}`
  output.answer(text, { type: 'sent', ...facts })
  output.note(`next: heed tail ${thread}`)
  return exitCodes.done
}

/** Prints the answer of a run as it is written. */
async function printAnswer(subscription: ThreadSubscription, runId: string, output: Output): Promise<ExitCode> {
  let isMidLine = false
  for await (const chunk of subscription.chunks()) {
    if (chunk.runId !== runId) continue
    if (output.isJSON) output.write(`${JSON.stringify(chunk)}\n`)
    else if (chunk.type === 'text-delta') {
      output.write(chunk.payload.text)
      isMidLine = !chunk.payload.text.endsWith('\n')
    } else if (chunk.type === 'text-end' && isMidLine) {
      output.write('\n')
      isMidLine = false
    } else if (chunk.type === 'tool-call-approval') {
      output.note(`asks for approval of ${chunk.payload.toolName} ${JSON.stringify(chunk.payload.args)}`)
    }
    if (chunk.type === 'finish') return exitCodes.done
    if (chunk.type === 'error') throw runFailed(chunk.payload.error)
    if (chunk.type === 'abort') throw new Failure(exitCodes.failed, 'the run was aborted.', { code: 'aborted' })
  }
  throw new Failure(exitCodes.unreachable, 'the stream ended before the answer.', { code: 'unreachable', retryable: true })
}

function runFailed({ message, code = 'run_failed' }: ChunkError): Failure {
  return new Failure(exitCodes.failed, `the run failed: ${message}`, { code })
}

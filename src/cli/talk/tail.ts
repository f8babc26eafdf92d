import type { ThreadSubscription } from '../../client/index.ts'
import type { Chunk } from '../../message/chunk.ts'
import { ThreadView } from '../render.ts'
import { exitCodes, type ExitCode } from '../shell/failure.ts'
import type { Output } from '../shell/output.ts'
import { explained, talkTo, type NamedServer } from './server.ts'

export interface TailArguments extends NamedServer {
  thread: string
  after: string | undefined
  until: string | undefined
}

/** Prints the chunks of a thread: as text, or one JSON object a line. A lost connection is opened again at the last cursor. */
export async function tail(args: TailArguments, output: Output): Promise<ExitCode> {
  const talk = await talkTo(args, args.thread)
  const { thread: threadId, after } = args
  const { resourceId } = talk
  const subscription = await talk.agent
    .subscribeToThread({ threadId, ...(resourceId === undefined ? {} : { resourceId }), ...(after === undefined ? {} : { after }) })
    .catch((error: unknown) => {
      throw explained(error)
    })
  // The stream may end at any moment after Ctrl-C; the answer stays what it is.
  let isInterrupted = false
  process.once('SIGINT', () => {
    isInterrupted = true
    subscription.unsubscribe()
    process.once('SIGINT', () => process.exit(exitCodes.interrupted))
  })
  output.note(`waiting for what happens on ${threadId} (Ctrl-C ends this)`)
  try {
    const code = await show(subscription, args.until, output)
    return isInterrupted ? exitCodes.interrupted : code
  } catch (error) {
    throw explained(error)
  }
}

async function show(subscription: ThreadSubscription, until: string | undefined, output: Output): Promise<ExitCode> {
  const view = new ThreadView((text) => output.write(text), width(process.stdout.columns))
  const onLost = () => output.note(`the connection is lost; it is opened again at ${subscription.cursor ?? 'the start'}`)
  for await (const chunk of subscription.chunks({ onLost })) {
    if (output.isJSON) output.write(`${JSON.stringify(chunk)}\n`)
    else showAsText(view, chunk)
    const code = until === 'finish' ? endOfRun(chunk) : undefined
    if (code === undefined) continue
    subscription.unsubscribe()
    view.end()
    return code
  }
  view.end()
  return exitCodes.done
}

function showAsText(view: ThreadView, chunk: Chunk): void {
  if (chunk.type === 'data-thread-snapshot') {
    const { reason } = chunk.data as { reason: string }
    view.line('note', 'thread', `continues from its stored state (${reason})`)
  } else if (chunk.type === 'error') view.line('problem', 'failed', chunk.payload.error.message)
  else if (chunk.type === 'abort') view.line('problem', 'aborted', 'the run was aborted')
  else if (chunk.type === 'tool-call-approval') view.line('asks', 'asks', `${chunk.payload.toolName} ${JSON.stringify(chunk.payload.args)}`)
  else view.show(chunk)
}

function endOfRun({ type }: Chunk): ExitCode | undefined {
  if (type === 'finish') return exitCodes.done
  return type === 'error' || type === 'abort' ? exitCodes.failed : undefined
}

/** Some terminals report no width. */
function width(columns = 0): number {
  return columns < 40 ? 110 : Math.min(columns, 110)
}

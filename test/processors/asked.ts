import { RequestContext } from '../../src/run/request-context.ts'
import { MessageList } from '../../src/message/list/list.ts'
import type { Message, MessagePart } from '../../src/message/message.ts'
import type { ProcessInputArgs, ProcessInputStepArgs, ProcessOutputResultArgs, ProcessorContext, Tripwire } from '../../src/processors/processor.ts'
import { TripwireAbort } from '../../src/processors/tripwire.ts'
import type { SignalInput } from '../../src/signals/signal.ts'

interface Asked extends ProcessorContext {
  logged: string[]
  sent: SignalInput[]
}

/** What a hook is given, for a run `run-1`. */
export function asked(over: Partial<ProcessorContext> = {}): Asked {
  const logged: string[] = []
  const sent: SignalInput[] = []
  const log = (message: string, fields?: Record<string, unknown>) => void logged.push(`${message} ${JSON.stringify(fields ?? {})}`)
  return {
    agent: { id: 'a', name: 'a' },
    runId: 'run-1',
    requestContext: new RequestContext(),
    abortSignal: new AbortController().signal,
    logger: { debug: log, info: log, warn: log, error: log },
    state: {},
    retryCount: 0,
    abort(reason = '', options = {}): never {
      throw new TripwireAbort({ reason, processorId: 'p', ...options })
    },
    async sendSignal(signal) {
      sent.push(signal)
      return undefined as never
    },
    logged,
    sent,
    ...over,
  }
}

export function inputArgs(messages: Message[], over: Partial<ProcessorContext> = {}): ProcessInputArgs & Asked {
  return { ...asked(over), messages, messageList: new MessageList().add(messages, 'input'), systemMessages: [], source: 'input' }
}

export function stepArgs(messageList: MessageList, over: Partial<ProcessInputStepArgs> = {}): ProcessInputStepArgs & Asked {
  return {
    ...asked(over),
    messages: messageList.get.all.db(),
    messageList,
    systemMessages: [],
    stepNumber: 0,
    steps: [],
    model: undefined as never,
    tools: [],
    toolChoice: undefined,
    activeTools: undefined,
    modelSettings: {},
    providerOptions: undefined,
    ...over,
  }
}

export function resultArgs(messages: Message[], over: Partial<ProcessorContext> = {}): ProcessOutputResultArgs & Asked {
  const result = { text: '', usage: undefined as never, finishReason: 'stop' as const, steps: [] }
  return { ...asked(over), messages, messageList: new MessageList().add(messages, 'response'), result }
}

export function said(id: string, role: Message['role'], ...parts: Array<string | MessagePart>): Message {
  const content = { format: 2 as const, parts: parts.map((part): MessagePart => (typeof part === 'string' ? { type: 'text', text: part } : part)) }
  return { id, role, createdAt: new Date(0), content }
}

export function called(toolName: string, toolCallId: string, args: Record<string, string> = {}, result = 'ok'): MessagePart {
  return { type: 'tool-invocation', toolInvocation: { toolCallId, toolName, args, state: 'result', result } }
}

/** What a hook refused with. */
export async function refusal(act: () => unknown): Promise<Tripwire> {
  try {
    await act()
  } catch (error) {
    if (error instanceof TripwireAbort) return error.tripwire
    throw error
  }
  throw new Error('did not refuse')
}

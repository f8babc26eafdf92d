// The calls of the pages about signals and about agents, in the words of this project. They compile; the program beside this folder runs some.
import { Agent, createNotificationInboxTool, Heed } from 'heed'
import type {
  AgentChunkType, AgentExecutionOptions, AgentGenerateOptions, AgentStreamOptions, AgentThreadSubscription, CoreSystemMessage,
  CreatedAgentSignal, DomainStorage, FilePart, JSONValue, LanguageModel, NotificationDeliveryDecision, NotificationDeliveryPolicyConfig, NotificationRecord,
  ProviderMetadata, RequestContext, StandardJSONSchemaV1, SystemModelMessage, TextPart, ToolPayloadTransformPolicy,
  ToolsInput,
} from 'heed'
import type { HeedClient } from 'heed/client'
import type { ComputeStateSignalArgs, ProcessInputStepArgs, Processor } from 'heed/processors'

const show = (..._: unknown[]) => {}
const thread = { resourceId: 'user-7', threadId: 'trip-1' }

export async function subscribeAndSend(agent: Agent): Promise<void> {
  const subscription = await agent.subscribeToThread(thread)
  agent.sendMessage('Compare it with the first one.', thread)
  void (async () => {
    for await (const chunk of subscription.stream) show(chunk)
  })()
  show(subscription.activeRunId(), subscription.abort())
  subscription.unsubscribe()
}

export async function sends(agent: Agent): Promise<void> {
  agent.sendMessage({ contents: 'Read the new note too.', attributes: { name: 'Ada', sentFrom: 'slack' } }, thread)
  agent.sendMessage([{ type: 'text', text: 'See this.' }, { type: 'file', data: 'aGk=', mediaType: 'text/plain' }], thread)
  agent.queueMessage('Then look at the tests.', thread)
  const kept = agent.sendSignal({ type: 'notification', contents: 'The build failed.' }, { ...thread, ifIdle: { behavior: 'persist' } })
  await kept.persisted
  agent.sendMessage('Go on.', { ...thread, ifIdle: { behavior: 'wake', streamOptions: { maxSteps: 3 } } })
  agent.sendMessage('Now.', { ...thread, ifIdle: { streamOptions: { maxSteps: 3 } } })
  agent.sendMessage('Now.', { ...thread, ifIdle: { streamOptions: { memory: { options: { lastMessages: 5 } } } } })
  agent.sendSignal({ type: 'notification', tagName: 'review', contents: 'A comment.', attributes: { source: 'github', pr: '7' } }, thread)
  for (const behavior of ['deliver', 'persist', 'discard'] as const) agent.sendMessage('Now.', { ...thread, ifActive: { behavior } })
  for (const behavior of ['wake', 'persist', 'discard'] as const) agent.sendMessage('Now.', { ...thread, ifIdle: { behavior } })
  agent.sendMessage(
    { contents: 'The edges too.', attributes: { source: 'chat' } },
    { ...thread, ifActive: { attributes: { delivery: 'during' } }, ifIdle: { attributes: { delivery: 'first' } } },
  )
  agent.sendMessage('To a run.', { runId: 'run-1' })
  for (const type of ['user', 'user-message', 'system-reminder'] as const) agent.sendSignal({ type, contents: 'As before.' }, thread)
  const state = { id: 'browser', mode: 'snapshot', cacheKey: 'b:1', contents: 'One tab.', value: { tabs: 1 } } as const
  const sent = await agent.sendStateSignal(state, thread)
  if (sent.skipped) show(sent.reason)
  else show(sent.runId, sent.signal.id)
  const event = { source: 'github', kind: 'ci', summary: 'It failed.', payload: { branch: 'main' }, dedupeKey: 'main:ci' }
  const notified = await agent.sendNotificationSignal({ ...event, priority: 'high' }, { ...thread, ifIdle: { streamOptions: { maxSteps: 2 } } })
  show(notified.record.id, notified.decision.action, notified.signal?.id, notified.runId)
  await agent.sendToolApproval({ ...thread, toolCallId: 'call-1', approved: true })
}

export const reminder: Processor = {
  id: 'reminder',
  async processInputStep({ messageList, sendSignal }: ProcessInputStepArgs) {
    const messages = messageList.get.all.db()
    if (messages.length === 0) return messageList
    const about = { attributes: { type: 'notes', path: 'NOTES.md' }, metadata: { path: 'NOTES.md' } }
    await sendSignal?.({ type: 'reactive', contents: 'Read the notes.', ...about })
    return messageList
  },
}

export const browserState: Processor = {
  id: 'browser-state',
  stateId: 'browser',
  computeStateSignal(args: ComputeStateSignalArgs) {
    const refresh = Boolean(args.lastSnapshot && !args.contextWindow.hasSnapshot)
    if (args.activeStateSignals.length > 0 && !refresh) return
    const isDelta = args.deltasSinceSnapshot.length > 0 && !refresh
    return { mode: isDelta ? 'delta' : 'snapshot', cacheKey: 'one', contents: 'One tab.', value: { tabs: 1 }, ...(isDelta ? { delta: {} } : {}) }
  },
}

export async function inbox(storage: DomainStorage) {
  const notifications = await storage.getStore('notifications')
  const support = new Agent({
    id: 'support',
    name: 'Support',
    instructions: 'You sort messages.',
    model: 'openai/gpt-5.5',
    tools: { notificationInbox: createNotificationInboxTool({ storage: notifications }) },
    notifications: {
      deliveryPolicy: {
        priorities: { urgent: 'deliver' },
        decide: ({ record }) => {
          if (record.priority === 'low') return { action: 'summarize', summaryAt: new Date(Date.now() + 60_000) }
          return undefined
        },
      },
    },
  })
  return new Heed({ agents: { support }, storage, notifications: { dispatch: { enabled: true, cron: '*/1 * * * *', batchSize: 100 } } })
}

export async function overHttp(client: HeedClient): Promise<void> {
  const agent = client.getAgent('support')
  const subscription = await agent.subscribeToThread(thread)
  await agent.sendMessage({ message: 'The short form.', ...thread })
  await agent.sendSignal({ signal: { type: 'user-message', contents: 'The short form.' }, ...thread })
  await subscription.processDataStream({ onChunk: (chunk) => show(chunk), reconnect: true })
}

const tone = { role: 'system', content: 'Stay calm.' }

export const agents = [
  new Agent({ id: 'one', name: 'One', instructions: 'You answer briefly.', model: 'openai/gpt-5.5' }),
  new Agent({ id: 'two', name: 'Two', instructions: { role: 'system', content: 'You know code.' }, model: process.env.MODEL ?? 'openai/gpt-5.5' }),
  new Agent({ id: 'three', name: 'Three', instructions: [{ role: 'system', content: 'A.' }, { role: 'system', content: 'B.' }], model: async () => 'openai/gpt-5.5' }),
  new Agent({
    id: 'four',
    name: 'Four',
    instructions: { role: 'system', content: 'You write.', providerOptions: { openai: { reasoningEffort: 'low' } } },
    model: ({ requestContext }) => (requestContext.get('plan') === 'gold' ? 'openai/gpt-5.5' : 'openai/gpt-5.5-mini'),
  }),
  new Agent({
    id: 'five',
    name: 'Five',
    instructions: [{ role: 'system', content: 'A.' }, tone, { role: 'system', content: 'B.', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } }],
    model: 'anthropic/claude-sonnet-4-6',
    editor: false,
  }),
]

/** The names of types that the page about agents uses. */
export interface Names {
  chunk: AgentChunkType
  subscription: AgentThreadSubscription
  options: AgentExecutionOptions
  generate: AgentGenerateOptions
  stream: AgentStreamOptions
  system: CoreSystemMessage | SystemModelMessage
  signal: CreatedAgentSignal
  parts: Array<TextPart | FilePart>
  json: JSONValue
  model: LanguageModel
  decision: NotificationDeliveryDecision
  policy: NotificationDeliveryPolicyConfig
  record: NotificationRecord
  provider: ProviderMetadata
  context: RequestContext
  schema: StandardJSONSchemaV1
  transform: ToolPayloadTransformPolicy
  tools: ToolsInput
}

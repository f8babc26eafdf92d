import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { onTestFinished } from 'vitest'
import { Channel, Contacts, directChannel, emailWebhook, slackEvents, standardWebhook, telegramBot, twilioSms } from '../../src/channel/index.ts'
import { HeedClient } from '../../src/client/index.ts'
import { openVoiceCall } from '../../src/client/call/index.ts'
import { HeedChatTransport } from '../../src/client/ai-sdk/index.ts'
import { useThread, WatchedThread } from '../../src/client/react/index.ts'
import { apiKeys, createHandler, jwt, serve } from '../../src/http/server.ts'
import { studio } from '../../src/studio/index.ts'
import { HeedEditor } from '../../src/editor/index.ts'
import { createClassifierScorer, createScorer, filterRun, runEvals } from '../../src/scorers/index.ts'
import {
  Agent, CompositeStore, createConsoleLogger, createNotificationInboxTool, createTool, fromUIMessages, Heed, InMemoryStore, Memory, ModelRouterEmbeddingModel, silentLogger,
} from '../../src/index.ts'
import { RedisBus } from '../../src/bus/redis/index.ts'
import { LibSQLStore, LibSQLVector, MemoryLibSQL, NotificationsLibSQL, SchedulesLibSQL, SubscriptionsLibSQL, WatchesLibSQL } from '../../src/store/sqlite/index.ts'
import { DuckDBVector } from '../../src/recall/stores/duckdb.ts'
import { LanceDBVector } from '../../src/recall/stores/lancedb.ts'
import { PgStore, PgVector, PostgresStore } from '../../src/store/postgres/index.ts'
import { CedarPolicies, FilePolicyStore, InMemoryPolicyStore } from '../../src/policy/index.ts'
import * as processors from '../../src/processors/index.ts'
import { GitHubSignals, WebhookSignals } from '../../src/sources/index.ts'
import { providerServer, scriptedModel, sourceConformance, virtualClock, workflowConformance } from '../../src/testing/index.ts'
import { cloneStep, cloneWorkflow, createStep, createWorkflow } from '../../src/workflow/index.ts'
import { CompositeVoice } from '../../src/voice/index.ts'
import { toneSpeech, toneTranscription } from '../voice/voices.ts'
import { open, thread } from './probe.ts'

/** Calls with an option that does not exist, `more`; by the types and calls whose options are walked. */
type Doors = Record<string, (more: object) => unknown>

const secret = `whsec_${'a'.repeat(40)}`
const url = ':memory:'
const judge = { generate: async () => ({ object: {} }) }
const memory = () => new Memory({ storage: new InMemoryStore() })
const source = () => {
  const shop = new WebhookSignals({ id: 'shop', secret })
  open({}, undefined, { sources: [shop] })
  return shop
}
const heed = () => {
  const one = new Heed({ storage: new InMemoryStore(), logger: silentLogger })
  onTestFinished(() => one.close())
  return one
}
const handler = (options: object) => {
  const made = createHandler(heed(), options)
  onTestFinished(() => made.close())
}
/** The client of a server that must not be asked. */
const client = () => new HeedClient({ baseUrl: 'http://localhost', retries: 0, fetch: () => Promise.reject(new Error('The server was asked.')) })
const guide = () => client().getAgent('guide')
const vectors = () => new LibSQLVector({ url })
const watched = () => new WatchedThread(guide(), { threadId: 't' })
const transport = () => new HeedChatTransport({ agent: guide() })
const send = { message: 'Hi.', ...thread }
const woken = (more: object) => ({ ...send, ifIdle: { streamOptions: { ...more } } })

const stores: Doors = {
  InMemoryStore: (more) => new InMemoryStore(more),
  RedisBusOptions: (more) => new RedisBus({ url: 'redis://localhost', ...more }),
  LibSQLStoreOptions: (more) => [LibSQLStore, MemoryLibSQL, NotificationsLibSQL, SchedulesLibSQL, SubscriptionsLibSQL, WatchesLibSQL].map((Store) => new Store({ url, ...more })),
  PgVectorOptions: (more) => new PgVector({ host: 'localhost', ...more }),
  PostgresStoreOptions: (more) => [PostgresStore, PgStore].map((Store) => new Store({ host: 'localhost', ...more })),
  CompositeStoreOptions: (more) => new CompositeStore({ default: new InMemoryStore(), ...more }),
  Retention: (more) => new InMemoryStore({ retention: more }),
  PruneOptions: (more) => new InMemoryStore({ retention: { messages: '1d' } }).prune(more),
  DuckDBVectorOptions: (more) => new DuckDBVector(more),
  LanceDBVectorOptions: (more) => new LanceDBVector({ uri: './x', ...more }),
  LibSQLVectorOptions: (more) => new LibSQLVector({ url, ...more }),
  'LibSQLVector.createIndex': (more) => vectors().createIndex({ indexName: 'i', dimension: 2, ...more }),
  'LibSQLVector.describeIndex': (more) => vectors().describeIndex({ indexName: 'i', ...more }),
  'LibSQLVector.deleteIndex': (more) => vectors().deleteIndex({ indexName: 'i', ...more }),
  VectorUpsert: (more) => vectors().upsert({ indexName: 'i', vectors: [], ...more }),
  VectorQuery: (more) => vectors().query({ indexName: 'i', queryVector: [1], ...more }),
  'LibSQLVector.updateVector': (more) => vectors().updateVector({ indexName: 'i', id: 'x', update: {}, ...more }),
  'LibSQLVector.deleteVector': (more) => vectors().deleteVector({ indexName: 'i', id: 'x', ...more }),
  'LibSQLVector.deleteVectors': (more) => vectors().deleteVectors({ indexName: 'i', id: 'x', ...more }),
}

const objects: Doors = {
  ToolConfig: (more) => createTool({ id: 'x', ...more }),
  ToolTransform: (more) => createTool({ id: 'x', transform: { display: more } as never }),
  createNotificationInboxTool: async (more) => createNotificationInboxTool({ storage: await new InMemoryStore().getStore('notifications'), ...more }),
  ConsoleLoggerOptions: (more) => createConsoleLogger(more),
  FromUIOptions: (more) => fromUIMessages([], { now: () => new Date(0), ...more }),
  ModelRouterEmbeddingModel: (more) => new ModelRouterEmbeddingModel({ providerId: 'openai', modelId: 'x', ...more }),
  'ResourceMemory.createThread': (more) => memory().forResource('u').createThread(more),
  'ResourceMemory.getThreadById': (more) => memory().forResource('u').getThreadById({ threadId: 't', ...more }),
  'ResourceMemory.deleteThread': (more) => memory().forResource('u').deleteThread({ threadId: 't', ...more }),
  'ResourceMemory.reindex': (more) => memory().forResource('u').reindex(more),
}

const policies: Doors = {
  CedarPoliciesOptions: (more) => new CedarPolicies(more),
  FilePolicyStoreOptions: (more) => new FilePolicyStore({ folder: 'unused', ...more }),
  SavePoliciesOptions: (more) => new CedarPolicies({ logger: silentLogger }).savePolicies('t', {}, more),
  'SavePoliciesOptions of a store': (more) => new FilePolicyStore({ folder: 'unused' }).savePolicies('t', {}, more),
  'SavePoliciesOptions of a store in memory': (more) => new InMemoryPolicyStore().savePolicies('t', {}, more),
}

const channels: Doors = {
  ChannelOptions: (more) => new Channel({ id: 'c', adapter: directChannel(), resourceId: 'u', ...more }),
  Contact: (more) => new Contacts([{ id: 'mum', addresses: [], ...more }]),
  ContactAddress: (more) => new Contacts([{ id: 'mum', addresses: [{ kind: 'sms', address: '+15550100', ...more }] }]),
  'Contacts.addAddress': (more) => new Contacts([{ id: 'mum', addresses: [] }]).addAddress('mum', { kind: 'sms', address: '+15550100', since: 1, ...more }),
  StandardWebhookOptions: (more) => standardWebhook({ secret, ...more }),
  WebhookReplies: (more) => standardWebhook({ secret, replies: { url: 'https://a.example', ...more } }),
  TwilioSmsOptions: (more) => twilioSms({ authToken: secret, url: 'https://a.example', ...more }),
  TelegramBotOptions: (more) => telegramBot({ secretToken: secret, ...more }),
  SlackEventsOptions: (more) => slackEvents({ signingSecret: secret, ...more }),
  EmailWebhookOptions: (more) => emailWebhook({ secret, authservId: 'mx', ...more }),
  DirectChannelOptions: (more) => directChannel(more),
  'HeedClient.listReplies': (more) => client().listReplies(more),
  'HeedClient.listScores': (more) => client().listScores(more),
  'HeedClient.saveScore': (more) => client().saveScore({ threadId: 't', runId: 'r', scorerId: 's', score: 1, ...more }),
  'HeedClient.retryScores': (more) => client().retryScores(more),
  'WorkflowClient.createRun': (more) => client().getWorkflow('w').createRun(more),
  'WorkflowClient.runs': (more) => client().getWorkflow('w').runs(more),
  'WorkflowClient.runById': (more) => client().getWorkflow('w').runById({ runId: 'r', ...more }),
  'WorkflowClient.deleteRunById': (more) => client().getWorkflow('w').deleteRunById({ runId: 'r', ...more }),
  RemoteStart: (more) => client().getWorkflow('w').createRun().start(more),
  'WorkflowRunClient.startAsync': (more) => client().getWorkflow('w').createRun().startAsync(more),
  'WorkflowRunClient.stream': (more) => client().getWorkflow('w').createRun().stream(more),
  'WorkflowRunClient.observe': (more) => client().getWorkflow('w').createRun().observe(more).next(),
  'WorkflowRunClient.resume': (more) => client().getWorkflow('w').createRun().resume(more),
  'WorkflowRunClient.resumeAsync': (more) => client().getWorkflow('w').createRun().resumeAsync(more),
  'WorkflowRunClient.sendEvent': (more) => client().getWorkflow('w').createRun().sendEvent('e', 1, more),
  'WorkflowRunClient.timeTravel': (more) => client().getWorkflow('w').createRun().timeTravel({ step: 's', ...more }),
  'HeedClient.retryReply': (more) => client().retryReply({ id: 'x', ...more }),
  ReplyListQuery: (more) => heed().channels.listReplies(more),
  ReplyScope: (more) => heed().channels.getReply({ id: 'x', ...more }),
  'Channels.retryReply': (more) => heed().channels.retryReply({ id: 'x', ...more }),
}

const servers: Doors = {
  StudioOptions: (more) => studio(more),
  HandlerOptions: (more) => handler(more),
  ServeOptions: (more) => serve(heed(), more),
  CloseOptions: (more) => heed().close(more),
  RunLimits: (more) => new Heed({ limits: more }),
  CorsOptions: (more) => handler({ cors: { origin: 'https://a.example', ...more } }),
  RateLimitOptions: (more) => handler({ rateLimit: { requests: 1, ...more } }),
  ServerLimits: (more) => handler({ limits: more }),
  apiKeys: (more) => apiKeys({ ['k'.repeat(16)]: { id: 'ada', resources: '*', ...more } }),
  JwtOptions: (more) => jwt({ jwks: { keys: [] }, issuer: 'i', audience: 'a', ...more }),
  WebhookSignalsOptions: (more) => new WebhookSignals({ secret, ...more }),
  GitHubSignalsOptions: (more) => new GitHubSignals({ secret: 'a'.repeat(32), ...more }),
  SubscribeTarget: (more) => source().subscribe({ ...thread, agentId: 'guide', externalId: 'x', ...more }),
  'SignalProvider.unsubscribe': (more) => source().unsubscribe({ threadId: 't', ...more }),
  'SignalProvider.listSubscriptions': (more) => source().listSubscriptions(more),
  SourceEvent: (more) => source().deliver({ id: 'e', externalIds: [], notification: { kind: 'k', summary: 's' }, ...more }),
}

const agents: Doors = {
  ClientOptions: (more) => new HeedClient({ baseUrl: 'http://localhost', ...more }),
  MemoryScope: (more) => client().memory(more),
  'HeedClient.tick': (more) => client().tick(more),
  'HeedClient.listProcesses': (more) => client().listProcesses(more),
  'HeedClient.listNotifications': (more) => client().listNotifications(more),
  'AgentClient.listRuns': (more) => guide().listRuns({ ...thread, ...more }),
  'AgentClient.listSignals': (more) => guide().listSignals({ ...thread, ...more }),
  'AgentClient.getStepPrompt': (more) => guide().getStepPrompt({ ...thread, runId: 'r', step: 0, ...more }),
  'AgentClient.memory': (more) => guide().memory(more),
  'AgentClient.sendMessage': (more) => guide().sendMessage({ ...send, ...more }),
  'AgentClient.sendMessage ifActive': (more) => guide().sendMessage({ ...send, ifActive: more }),
  'AgentClient.sendMessage ifIdle': (more) => guide().sendMessage({ ...send, ifIdle: more }),
  'AgentClient.sendMessage streamOptions': (more) => guide().sendMessage(woken(more)),
  'AgentClient.sendMessage message': (more) => guide().sendMessage({ ...send, message: { contents: 'Hi.', ...more } }),
  'AgentClient.queueMessage': (more) => guide().queueMessage({ ...send, ...more }),
  'AgentClient.sendSignal': (more) => guide().sendSignal({ signal: { type: 'reactive', contents: 'x' }, ...thread, ...more }),
  'AgentClient.sendStateSignal': (more) => guide().sendStateSignal({ state: { id: 'l', cacheKey: 'k', contents: 'x' }, ...thread, ...more }),
  'AgentClient.generate': (more) => guide().generate('Hi.', { ...more }),
  'AgentClient.stream memory': (more) => guide().stream('Hi.', { memory: more }),
  SubscribeParams: (more) => guide().subscribeToThread({ threadId: 't', ...more }),
  'AgentClient.watchThread': (more) => guide().watchThread({ threadId: 't', ...more }),
  'AgentClient.abortThread': (more) => guide().abortThread({ threadId: 't', ...more }),
  ThreadScope: (more) => guide().activeRun({ threadId: 't', ...more }),
  'AgentClient.listQueued': (more) => guide().listQueued({ threadId: 't', ...more }),
  'AgentClient.listActiveThreads': (more) => guide().listActiveThreads(more),
  'AgentClient.observe': (more) => guide().observe({ runId: 'r', ...more }),
  'AgentClient.recover': (more) => guide().recover({ runId: 'r', ...more }),
  'AgentClient.listParkedRuns': (more) => guide().listParkedRuns(more),
  'AgentClient.retryParked': (more) => guide().retryParked({ threadId: 't', ...more }),
  'AgentClient.listLanes': (more) => guide().listLanes({ threadId: 't', ...more }),
  'AgentClient.getLane': (more) => guide().getLane({ threadId: 't', id: 'l', ...more }),
  'AgentClient.listLaneHistory': (more) => guide().listLaneHistory({ threadId: 't', id: 'l', ...more }),
  'AgentClient.sendToolApproval': (more) => guide().sendToolApproval({ threadId: 't', approved: true, ...more }),
  'AgentClient.sendStreamResume': (more) => guide().sendStreamResume({ threadId: 't', resumeData: 1, ...more }),
  'AgentClient.approveToolCall': (more) => guide().approveToolCall({ runId: 'r', ...more }),
  'AgentClient.resumeStream': (more) => guide().resumeStream(1, { runId: 'r', ...more }),
  'AgentClient.declineToolCall': (more) => guide().declineToolCall({ runId: 'r', ...more }),
  'AgentClient.approveToolCallGenerate': (more) => guide().approveToolCallGenerate({ runId: 'r', ...more }),
  'AgentClient.declineToolCallGenerate': (more) => guide().declineToolCallGenerate({ runId: 'r', ...more }),
  'AgentClient.listSuspendedRuns': (more) => guide().listSuspendedRuns(more),
  'AgentClient.cancelQueued': (more) => guide().cancelQueued({ threadId: 't', signalIds: [], ...more }),
  'AgentClient.reorderQueued': (more) => guide().reorderQueued({ threadId: 't', signalIds: [], ...more }),
  'AgentClient.explain': (more) => guide().explain({ threadId: 't', signalId: 's', ...more }),
  ProcessOptions: (more) => guide().watchThread({ threadId: 't' }).processDataStream({ onChunk() {}, ...more }),
  Reconnect: (more) => guide().watchThread({ threadId: 't' }).chunks(more).next(),
  'ThreadSubscription.chunks': (more) => guide().watchThread({ threadId: 't' }).chunks(more).next(),
  'ThreadSubscription.abort': (more) => guide().watchThread({ threadId: 't' }).abort(more),
}

const clients: Doors = {
  'MemoryClient.listThreads': (more) => client().memory().listThreads(more),
  'MemoryClient.createThread': (more) => client().memory().createThread(more),
  'MemoryClient.getThreadById': (more) => client().memory().getThreadById({ threadId: 't', ...more }),
  'MemoryClient.updateThread': (more) => client().memory().updateThread({ id: 't', ...more }),
  'MemoryClient.cloneThread': (more) => client().memory().cloneThread({ sourceThreadId: 't', ...more }),
  'MemoryClient.transferThread': (more) => client().memory().transferThread({ threadId: 't', resourceId: 'r', ...more }),
  'MemoryClient.listMessages': (more) => client().memory().listMessages({ threadId: 't', ...more }),
  'MemoryClient.search': (more) => client().memory().search({ searchQuery: 'x', ...more }),
  'MemoryClient.explainRecall': (more) => client().memory().explainRecall({ searchQuery: 'x', ...more }),
  'MemoryClient.saveMessages': (more) => client().memory().saveMessages({ messages: [], ...more }),
  'MemoryClient.updateMessages': (more) => client().memory().updateMessages({ messages: [], ...more }),
  'MemoryClient.deleteMessages': (more) => client().memory().deleteMessages({ messageIds: [], ...more }),
  'MemoryClient.getWorkingMemory': (more) => client().memory().getWorkingMemory({ threadId: 't', ...more }),
  'MemoryClient.updateWorkingMemory': (more) => client().memory().updateWorkingMemory({ threadId: 't', workingMemory: 'x', ...more }),
  'MemoryClient.listWorkingMemoryVersions': (more) => client().memory().listWorkingMemoryVersions({ threadId: 't', ...more }),
  'MemoryClient.undoWorkingMemory': (more) => client().memory().undoWorkingMemory({ threadId: 't', ...more }),
  'NotificationsClient.send': (more) => guide().notifications.send({ threadId: 't', notification: { source: 's', kind: 'k', summary: 's' }, ...more }),
  'NotificationsClient.send streamOptions': (more) => guide().notifications.send({ threadId: 't', notification: { source: 's', kind: 'k', summary: 's' }, ifIdle: { streamOptions: { ...more } } }),
  'NotificationsClient.sendAll': (more) => guide().notifications.sendAll({ threadId: 't', notifications: [], ...more }),
  NotificationFilter: (more) => guide().notifications.list({ threadId: 't', ...more }),
  'NotificationsClient.get': (more) => guide().notifications.get({ threadId: 't', id: 'n', ...more }),
  'NotificationsClient.mark': (more) => guide().notifications.mark({ threadId: 't', ids: [], status: 'seen', ...more }),
  'NotificationsClient.retry': (more) => guide().notifications.retry({ threadId: 't', ids: [], ...more }),
  'client:NewSchedule': (more) => guide().schedules.create({ threadId: 't', every: 1, message: 'x', ...more }),
  'SchedulesClient.list': (more) => guide().schedules.list(more),
  Named: (more) => guide().schedules.get({ id: 's', ...more }),
  'SchedulesClient.pause': (more) => guide().schedules.pause({ id: 's', ...more }),
  'SchedulesClient.resume': (more) => guide().schedules.resume({ id: 's', ...more }),
  'EditorClient.publish': (more) => guide().editor.publish({ version: 1, expected: 0, ...more }),
  'EditorClient.rollBack': (more) => guide().editor.rollBack({ expected: 0, ...more }),
  'EditorClient.listVersions': (more) => guide().editor.listVersions(more),
  'EditorClient.listReleases': (more) => guide().editor.listReleases(more),
  'EditorClient.compare': (more) => guide().editor.compare({ from: 0, to: 1, ...more }),
  'EditorClient.delete': (more) => guide().editor.delete(1, more),
  'EditorClient.preview': (more) => guide().editor.preview(more),
  'HeedClient.prompts': (more) => client().prompts(more),
  'PromptBlocksClient.list': (more) => client().prompts().list(more),
  'PromptBlocksClient.save': (more) => client().prompts().save('a', { base: 0, content: 'x', ...more }),
  'PromptBlocksClient.clone': (more) => client().prompts().clone('a', { as: 'b', ...more }),
  'PromptBlocksClient.publish': (more) => client().prompts().publish('a', { version: 1, expected: 0, ...more }),
  'PromptBlocksClient.rollBack': (more) => client().prompts().rollBack('a', { expected: 0, ...more }),
  'PromptBlocksClient.listVersions': (more) => client().prompts().listVersions('a', more),
  'PromptBlocksClient.listReleases': (more) => client().prompts().listReleases('a', more),
  'PromptBlocksClient.compare': (more) => client().prompts().compare('a', { from: 1, to: 1, ...more }),
  'PromptBlocksClient.delete': (more) => client().prompts().delete('a', more),
  'SchedulesClient.remove': (more) => guide().schedules.remove({ id: 's', ...more }),
  UseThreadOptions: (more) => renderToString(createElement(() => (useThread({ threadId: 't', agent: guide(), ...more }), null))),
  WatchedThread: (more) => new WatchedThread(guide(), { threadId: 't', ...more }),
  SendChoice: (more) => watched().send('Hi.', more),
  'WatchedThread.abort': (more) => watched().abort(more),
  HeedChatTransportOptions: (more) => new HeedChatTransport({ agent: guide(), ...more }),
  'ai-sdk:SendOptions': (more) => transport().sendMessages({ trigger: 'submit-message', chatId: 't', messages: [], ...more }),
  'ai-sdk:SendOptions body': (more) => transport().sendMessages({ trigger: 'submit-message', chatId: 't', messages: [], body: more }),
  'HeedChatTransport.reconnectToStream': (more) => transport().reconnectToStream({ chatId: 't', ...more }),
}

function edited(): HeedEditor {
  const editor = new HeedEditor()
  void new Heed({ agents: { a: new Agent({ id: 'a' }) }, storage: new InMemoryStore(), editor })
  return editor
}

const speaking = () => new CompositeVoice({ input: toneTranscription(), output: toneSpeech() })

const voices: Doors = {
  openVoiceCall: (more) => openVoiceCall({ session: () => Promise.reject(new Error('No session.')) }, { threadId: 'a', ...more }),
  CompositeVoice: (more) => new CompositeVoice({ output: toneSpeech(), ...more }),
  'CompositeVoice format': (more) => new CompositeVoice({ output: toneSpeech(), format: { type: 'audio/pcm', ...more } }),
  'CompositeVoice.speak': (more) => speaking().speak('Hi.', more),
  'CompositeVoice.listen': (more) => speaking().listen(new Uint8Array(2), more),
  'AgentVoice.session': (more) => open({ voice: speaking() }).agent.voice.session({ ...thread, ...more }),
  'AgentVoice.session turn': (more) => open({ voice: speaking() }).agent.voice.session({ ...thread, turn: more }),
  'AgentVoice.speak': (more) => open({ voice: speaking() }).agent.voice.speak('Hi.', more),
  'AgentVoice.listen': (more) => open({ voice: speaking() }).agent.voice.listen(new Uint8Array(2), more),
  'VoiceSession.played': async (more) => (await open({ voice: speaking() }).agent.voice.session(thread)).played({ itemId: 'a', ms: 1, ...more }),
  'Agent.getVoice': (more) => open({ voice: speaking() }).agent.getVoice(more),
}

const others: Doors = {
  createScorer: (more) => createScorer({ id: 's', description: 'd', ...more }),
  'createScorer judge': (more) => createScorer({ id: 's', description: 'd', judge: { model: scriptedModel([]), ...more } }),
  'Scorer.run': (more) => createScorer({ id: 's', description: 'd' }).generateScore(() => 1).run({ input: '', output: '', ...more }),
  runEvals: (more) => runEvals({ target: () => '', data: [{ input: 'x' }], scorers: [() => ({ name: 'x', score: 1 })], ...more }),
  'Heed.listScores': (more) => heed().listScores(more),
  'Heed.countScores': (more) => heed().countScores(more),
  'Heed.saveScore': (more) => heed().saveScore({ threadId: 't', runId: 'r', scorerId: 's', score: 1, ...more }),
  'Heed.retryScores': (more) => heed().retryScores(more),
  'Heed.backfillScores': (more) => heed().backfillScores({ agentId: 'a', scorer: 's', ...more }),
  'Agent.listScorers': (more) => new Agent({ id: 'a', model: scriptedModel([]) }).listScorers(more),
  filterRun: (more) => filterRun(more),
  createClassifierScorer: (more) => createClassifierScorer({ id: 'c', description: 'd', question: 'q', choices: { a: 1, b: 0 }, model: scriptedModel([]), ...more }),
  HeedEditor: (more) => new HeedEditor(more as Record<string, never>),
  'HeedEditor.describe': (more) => new HeedEditor().describe('a', more),
  'HeedEditor.save': (more) => edited().save('a', { base: 0, by: 'ann', instructions: 'x', ...more }),
  'HeedEditor.publish': (more) => new HeedEditor().publish('a', { version: 1, expected: 0, by: 'ann', ...more }),
  'HeedEditor.rollBack': (more) => new HeedEditor().rollBack('a', { expected: 0, by: 'ann', ...more }),
  'HeedEditor.getVersion': (more) => new HeedEditor().getVersion('a', 1, more),
  'HeedEditor.listVersions': (more) => new HeedEditor().listVersions('a', more),
  'HeedEditor.listReleases': (more) => new HeedEditor().listReleases('a', more),
  'HeedEditor.compare': (more) => new HeedEditor().compare('a', { from: 0, to: 1, ...more }),
  'HeedEditor.list': (more) => new HeedEditor().list(more),
  'HeedEditor.delete': (more) => new HeedEditor().delete('a', { by: 'ann', ...more }),
  'HeedEditor.preview': (more) => new HeedEditor().preview('a', more),
  'PromptBlocks.describe': (more) => new HeedEditor().prompts.describe('a', more),
  'PromptBlocks.list': (more) => new HeedEditor().prompts.list(more),
  'PromptBlocks.save': (more) => edited().prompts.save('a', { base: 0, by: 'ann', content: 'x', ...more }),
  'PromptBlocks.clone': (more) => new HeedEditor().prompts.clone('a', { as: 'b', by: 'ann', ...more }),
  'PromptBlocks.publish': (more) => new HeedEditor().prompts.publish('a', { version: 1, expected: 0, by: 'ann', ...more }),
  'PromptBlocks.rollBack': (more) => new HeedEditor().prompts.rollBack('a', { expected: 0, by: 'ann', ...more }),
  'PromptBlocks.getVersion': (more) => new HeedEditor().prompts.getVersion('a', 1, more),
  'PromptBlocks.listVersions': (more) => new HeedEditor().prompts.listVersions('a', more),
  'PromptBlocks.listReleases': (more) => new HeedEditor().prompts.listReleases('a', more),
  'PromptBlocks.compare': (more) => new HeedEditor().prompts.compare('a', { from: 1, to: 1, ...more }),
  'PromptBlocks.delete': (more) => new HeedEditor().prompts.delete('a', { by: 'ann', ...more }),
  'Agent editor': (more) => new Agent({ id: 'a', editor: more }),
  'Agent editor.tools': (more) => new Agent({ id: 'a', editor: { tools: more } }),
  'Agent scorers': (more) => new Agent({ id: 'a', model: scriptedModel([]), scorers: { x: { scorer: createScorer({ id: 's', description: 'd' }).generateScore(() => 1), ...more } } }),
  AttachmentUploaderOptions: (more) => new processors.AttachmentUploader({ upload: async () => '', ...more }),
  MessageHistoryOptions: (more) => new processors.MessageHistory(more),
  ModerationOptions: (more) => new processors.ModerationProcessor({ judge, ...more }),
  PIIDetectorOptions: (more) => new processors.PIIDetector({ judge, ...more }),
  PromptInjectionDetectorOptions: (more) => new processors.PromptInjectionDetector({ judge, ...more }),
  SystemPromptScrubberOptions: (more) => new processors.SystemPromptScrubber({ judge, ...more }),
  RegexFilterOptions: (more) => new processors.RegexFilter({ presets: ['urls'], ...more }),
  RegexRule: (more) => new processors.RegexFilter({ rules: [{ name: 'x', pattern: /x/g, ...more }] }),
  SemanticRecallProcessorOptions: (more) => new processors.SemanticRecall(more),
  WorkingMemoryOptions: (more) => new processors.WorkingMemory(more),
  TokenLimiter: (more) => new processors.TokenLimiter({ limit: 1, ...more }),
  ToolCallFilterOptions: (more) => new processors.ToolCallFilter(more),
  UnicodeNormalizerOptions: (more) => new processors.UnicodeNormalizer(more),
  BrowserLaneOptions: (more) => processors.browserLane({ read: () => undefined, ...more }),
  FileReminderOptions: (more) => processors.fileReminder({ load: () => undefined, ...more }),
  scriptedModel: (more) => scriptedModel([], more),
  Pace: (more) => scriptedModel([], { pace: { deltaMs: 0, ...more } }),
  Script: (more) => scriptedModel([{ text: 'x', ...more }]).doStream({ prompt: [] }),
  ScriptedToolCall: (more) => scriptedModel([{ toolCalls: [{ toolName: 'x', ...more }] }]).doStream({ prompt: [] }),
  'VirtualClock.runAll': (more) => virtualClock().runAll(more),
  ProviderServerOptions: (more) => providerServer(more),
  'ProviderServer.script': async (more) => {
    await using server = await providerServer()
    server.script([], more)
  },
  SourceHarness: (more) => sourceConformance({ storage: () => new InMemoryStore(), source, things: ['a', 'b'], ...more }),
  WorkflowHarness: (more) => workflowConformance({ storage: () => new InMemoryStore(), workflows: () => ({ adds: workflow(), asks: workflow(), fails: workflow(), waits: workflow() }), ...more }),
}

const step = createStep({ id: 'x', execute: () => 1 })
const workflow = () => createWorkflow({ id: 'w' }).then(step).commit()
const workflows: Doors = {
  WorkflowConfig: (more) => createWorkflow({ id: 'x', ...more }),
  'WorkflowConfig.retryConfig': (more) => createWorkflow({ id: 'x', retryConfig: more }),
  'WorkflowConfig.options': (more) => createWorkflow({ id: 'x', options: more }),
  StepConfig: (more) => createStep({ id: 'x', execute: () => 1, ...more }),
  'createStep.structuredOutput': (more) => createStep({ id: 'a', generate: async () => ({ text: '', object: {}, finishReason: 'stop' }) }, { structuredOutput: { schema: { type: 'object' }, ...more } }),
  cloneStep: (more) => cloneStep(step, { id: 'y', ...more }),
  cloneWorkflow: (more) => cloneWorkflow(workflow(), { id: 'y', ...more }),
  'Workflow.branch': (more) => createWorkflow({ id: 'x' }).branch([[() => true, step]], more),
  'Workflow.foreach': (more) => createWorkflow({ id: 'x' }).foreach(step, more),
  'Workflow.map': (more) => createWorkflow({ id: 'x' }).map(() => 1, more),
  'Workflow.sleep': (more) => createWorkflow({ id: 'x' }).sleep(1, more),
  'Workflow.sleepUntil': (more) => createWorkflow({ id: 'x' }).sleepUntil(new Date(), more),
  'Workflow.waitForEvent': (more) => createWorkflow({ id: 'x' }).waitForEvent('e', more),
  'Workflow.createRun': (more) => workflow().createRun(more),
  'Workflow.listWorkflowRuns': (more) => workflow().listWorkflowRuns(more),
  StartArgs: (more) => workflow().createRun().start(more),
  ResumeArgs: (more) => workflow().createRun().resume(more),
  TimeTravelArgs: (more) => workflow().createRun().timeTravel({ step: 'x', ...more }),
  'WorkflowRun.sendEvent': (more) => workflow().createRun().sendEvent('e', 1, more),
  'WorkflowRun.observe': (more) => workflow().createRun().observe(more).next(),
}

export const doors: Doors = { ...workflows, ...stores, ...objects, ...policies, ...channels, ...servers, ...agents, ...clients, ...voices, ...others }

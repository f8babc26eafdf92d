import type { Calls } from './declared.ts'

/** The public calls whose options are walked. Of stores and processors, the constructors: their methods are called by Heed. */
export const calls: Calls = {
  heed: [
    'Agent', 'AgentSchedules', 'AgentVoice', 'Channels', 'Memory', 'Heed', 'ResourceMemory', 'CompositeStore', 'new InMemoryStore', 'new MessageList', 'new HeedError', 'new ToolError',
    'ModelRouterEmbeddingModel', 'createConsoleLogger', 'createNotificationInboxTool', 'createTool', 'fromUIMessages',
  ],
  libsql: [
    'new LibSQLStore', 'LibSQLVector', 'new MemoryLibSQL', 'new NotificationsLibSQL', 'new SchedulesLibSQL', 'new SubscriptionsLibSQL', 'new WatchesLibSQL',
  ],
  redis: ['new RedisBus'],
  duckdb: ['new DuckDBVector'],
  lancedb: ['new LanceDBVector'],
  pg: ['new PostgresStore', 'new PgVector'],
  server: ['createHandler', 'serve', 'apiKeys', 'jwt'],
  sources: ['SignalProvider', 'new WebhookSignals', 'new GitHubSignals'],
  client: [
    'HeedClient', 'AgentClient', 'EditorClient', 'PromptBlocksClient', 'MemoryClient', 'NotificationsClient', 'SchedulesClient', 'ThreadSubscription', 'ThreadListSubscription', 'WorkflowClient',
    'WorkflowRunClient', 'VoiceClient', 'RemoteVoiceSession',
  ],
  react: ['useThread', 'WatchedThread'],
  'ai-sdk': ['HeedChatTransport', 'answersWhatWaits'],
  processors: [
    'new AttachmentUploader', 'new MessageHistory', 'new ModerationProcessor', 'new PIIDetector', 'new PromptInjectionDetector', 'new RegexFilter',
    'new SemanticRecall', 'new SystemPromptScrubber', 'new TokenLimiter', 'new ToolCallFilter', 'new UnicodeNormalizer', 'new WorkingMemory',
    'browserLane', 'fileReminder',
  ],
  policy: ['CedarPolicies', 'FilePolicyStore'],
  channels: ['Channel', 'Contacts', 'standardWebhook', 'twilioSms', 'telegramBot', 'slackEvents', 'emailWebhook', 'directChannel'],
  editor: ['HeedEditor', 'PromptBlocks'],
  scorers: [
    'createScorer', 'Scorer', 'createToolCallAccuracyScorer', 'createSchemaMatchScorer', 'createLatencyScorer', 'createCostScorer', 'createAnswerRelevancyScorer',
    'createFaithfulnessScorer', 'createHallucinationScorer', 'createBiasScorer', 'createToxicityScorer', 'createPromptAlignmentScorer', 'createClassifierScorer', 'filterRun', 'runEvals',
  ],
  studio: ['studio'],
  workflows: ['Workflow', 'WorkflowRun', 'createWorkflow', 'createStep', 'cloneStep', 'cloneWorkflow'],
  voice: ['CompositeVoice', 'VoiceSession'],
  'voice-call': ['openVoiceCall'],
  testing: ['scriptedModel', 'virtualClock', 'VirtualClock', 'providerServer', 'ProviderServer', 'sourceConformance', 'workflowConformance'],
}

/** Exported calls that have no options: the parameters are positional, or content. */
export const withoutOptions: Calls = {
  workflows: ['mapVariable'],
  heed: ['AgentStream', 'RequestContext', 'estimateTokens', 'hasToolCall', 'isHeedError', 'stepCountIs', 'toUIMessages'],
  'ai-sdk': ['uiChunks'],
  channels: ['checkMessage', 'countsFor', 'normalAddress'],
  embed: ['LocalEmbedder', 'localEmbedder'],
  policy: ['InMemoryPolicyStore'],
  testing: ['spelledSound', 'spelledText'],
  'voice-call': ['VoiceCall'],
  scorers: [
    'ScorerDraft', 'notScorable', 'groundsOf', 'questionOf', 'textOf', 'trajectoryOf', 'createKeywordCoverageScorer', 'createSimilarityScorer', 'compareEvals',
  ],
}

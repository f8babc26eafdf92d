import type { Cited } from './probe.ts'

const postgres = 'test/postgres/store.test.ts'
const recall = 'test/memory/specification/recall.test.ts'
/** Tests elsewhere that show the effect of options. */
export const cited: Cited[] = [
  { file: 'test/workflow/agent-tools.test.ts', covers: { Agent: 'workflows' } },
  {
    file: 'src/scorers/scorer.test.ts',
    covers: {
      createScorer: 'id name description type version better judge', JudgeConfig: 'model instructions jsonPromptInjection timeoutMs clock',
      'Scorer.generateReason': 'description createPrompt judge', 'Scorer.run': 'input output groundTruth requestContext runId metrics abortSignal',
    },
  },
  {
    file: 'src/scorers/builtin/builtin.test.ts',
    covers: {
      createToolCallAccuracyScorer: 'expectedTools order', createSchemaMatchScorer: 'schema', createLatencyScorer: 'targetMs limitMs',
      createCostScorer: 'prices prices.input prices.output prices.cachedInput target limit', createAnswerRelevancyScorer: 'model',
      createFaithfulnessScorer: 'model context', createHallucinationScorer: 'model', createBiasScorer: 'model', createToxicityScorer: 'model',
      createPromptAlignmentScorer: 'model',
    },
  },
  {
    file: 'src/scorers/evals/run-evals.test.ts',
    covers: {
      runEvals: 'target data data.file scorers scorers.scorer scorers.threshold scorers.threshold.min scorers.threshold.max gates targetOptions concurrency trials abortSignal onItemComplete',
    },
  },
  {
    file: 'test/scorers/scoring.test.ts',
    covers: {
      Agent: 'scorers scorers.scorer scorers.sampling scorers.sampling.type scorers.sampling.rate',
      'Heed.listScores': 'threadId resourceId runId agentId scorerId state before limit', 'Agent.getInstructions': 'requestContext',
    },
  },
  { file: 'test/postgres/vector.test.ts', title: 'takes the parts of an address, a pool, a client, a schema and an id', covers: { PgVector: 'id connectionString host port user password database ssl schemaName pool client' } },
  { file: postgres, title: '[Q2.3] says what is wrong, and never the password', covers: { PostgresStore: 'host port user password database schemaName' } },
  { file: postgres, title: 'take a pool or a client of the user, and leave them open', covers: { PostgresStore: 'connectionString max pool client' } },
  { file: postgres, title: 'give a store its id, clock, retention and namespace, and encrypt its connections', covers: { PostgresStore: 'id clock retention namespace ssl' } },
  { file: 'test/memory/guarded-context.test.ts', title: '[G3.8] checkInput() of an agent gives a program the same check', covers: { 'Agent.checkInput': 'threadId resourceId requestContext' } },
  { file: 'test/thread/run-limits.test.ts', covers: { Heed: 'limits limits.runs limits.waitingRuns' } },
  { file: 'test/cluster/draining.campaign.ts', covers: { 'Heed.close': 'drainMs', serve: 'drainMs' } },
  { file: 'test/redis/bus.test.ts', covers: { RedisBus: 'url client keyPrefix maxEntries' } },
  { file: recall, title: 'topK, messageRange and scope', covers: { SemanticRecallOptions: 'topK messageRange scope' } },
  { file: recall, title: 'options at the top, and enabled: true', covers: { SemanticRecallOptions: 'enabled', Memory: 'embedder' } },
  { file: recall, title: 'an embedder and the one before it; not the one before it alone', covers: { Memory: 'formerEmbedder' } },
  {
    file: 'test/memory/vector-stores.test.ts',
    covers: {
      VectorOption: 'id indexSeparator createIndex listIndexes describeIndex deleteIndex upsert query deleteVector deleteVectors',
    },
  },
  { file: 'test/memory/recall-window.test.ts', title: '[K2.14] a limit of the window, or of a block, that the program sets holds', covers: { SemanticRecallOptions: 'maxTokens maxWindowTokens' } },
  { file: 'test/tracing/traces.test.ts', title: '[T1.2] an error is recorded by its type and code alone unless contents are recorded: its message may quote them', covers: { Heed: 'tracing.recordInputs tracing.recordOutputs' } },
  { file: 'test/recall/conformance/suite.ts', title: '[K1.8] reindexes with progress, and searches meanwhile', covers: { 'Memory.reindex': 'onProgress' } },
  { file: 'test/http/view.test.ts', title: '[U1.1] is the same when it begins with a snapshot in the middle', covers: { 'Agent.subscribeToThread': 'snapshot' } },
  { file: 'test/watch/subscribers.test.ts', title: '[V1.26] that ask for it receive what happens to its watches', covers: { 'Agent.subscribeToThread': 'watches' } },
  { file: 'test/watch/retention.test.ts', title: '[V1.27] prune() removes all of it', covers: { InMemoryStore: 'retention.watches', LibSQLStore: 'retention.watches', CompositeStore: 'retention.watches' } },
  { file: 'test/http/watches.test.ts', title: '[V1.25] a client reads why each message', covers: { 'AgentClient.explain': 'watchId limit after' } },
  { file: 'test/thread/watching.test.ts', title: '[W1.1] that return too late start from a snapshot with the reason', covers: { 'Agent.subscribeToThread': 'after' } },
  { file: 'test/agent/model-lists.test.ts', title: 'has settings, provider options and headers of its own, over those of the call', covers: { ModelConfig: 'modelSettings providerOptions headers' } },
  {
    file: 'test/start/silent-options.test.ts',
    title: '[G1.7] default options of the legacy methods are for each of them alone',
    covers: { Agent: 'defaultGenerateOptionsLegacy defaultStreamOptionsLegacy' },
  },
  {
    file: recall,
    title: 'an index that the store does not support is rejected by name, in both forms',
    covers: {
      SemanticRecallOptions: 'indexConfig',
      VectorIndexConfig: 'type metric m efConstruction hnsw hnsw.m hnsw.efConstruction',
    },
  },
  { file: 'test/http/client-failures.test.ts', covers: {
      'ThreadSubscription.processDataStream': 'reconnect.maxRetries reconnect.delayMs reconnect.onLost reconnect.onOpen onChunk reconnect',
      'ThreadSubscription.chunks': 'maxRetries delayMs onLost onOpen',
    } },
  { file: 'test/http/cut-off.test.ts', title: '[H2.4] a client waits longer than the heartbeat', covers: { HeedClient: 'silenceMs', createHandler: 'heartbeatMs' } },
  { file: 'test/sources/signed-headers.test.ts', covers: { WebhookSignals: 'acceptUnsignedHeaders', GitHubSignals: 'maxAgeSeconds' } },
  { file: 'test/http/quotas.test.ts', covers: {
      createHandler: 'limits.schedulesPerResource limits.schedules limits.watchesPerResource limits.watches limits.threadsPerResource limits.threads limits.bytesPerResource limits.bytes limits.requests',
    } },
  { file: 'test/http/bounds.test.ts', covers: { createHandler: 'limits.failedLogins limits.streamsPerPrincipal limits.streams limits.scheduleMs' } },
  { file: 'test/http/stream-tickets.test.ts', covers: { createHandler: 'ticketSecret', serve: 'ticketSecret' } },
  { file: 'test/studio/serving.test.ts', covers: { createHandler: 'studio', serve: 'studio', studio: 'path folder' } },
  { file: 'test/http/slow-client.test.ts', covers: { createHandler: 'stallMs' } },
  { file: 'test/http/half-open-process.ts', covers: { createHandler: 'lingerMs' } },
  { file: 'test/agent/model-lists.test.ts', covers: { ModelConfig: 'model maxRetries' } },
  { file: 'src/testing/scripted-model.test.ts', covers: {
      scriptedModel: 'provider modelId loop record error.status error.message error.type error.headers errorAfter.error.status errorAfter.error.message errorAfter.error.type errorAfter.error.headers error errorAfter errorAfter.parts errorAfter.error',
    } },
  { file: 'src/testing/playback.test.ts', covers: { scriptedModel: 'pace clock pace.deltaMs delayMs gate gate.parts gate.until hang hang.parts' } },
  { file: 'src/testing/earlier-specification.test.ts', covers: { scriptedModel: 'specificationVersion' } },
  {
    file: 'src/testing/step-parts.test.ts',
    covers: {
      scriptedModel: 'text reasoning toolCalls files sources finishReason usage parts toolCalls.toolName toolCalls.input toolCalls.inputText toolCalls.toolCallId files.mediaType files.data files.url sources.url sources.title sources.id sources.mediaType usage.inputTokens usage.outputTokens usage.cachedInputTokens usage.cacheWriteTokens',
    },
  },
  { file: 'src/testing/providers/openai-responses.test.ts', covers: { scriptedModel: 'sources.filename' } },
  { file: 'src/testing/providers/provider-server.test.ts', covers: { scriptedModel: 'usage.reasoningTokens' } },
  { file: 'test/agent/transform.test.ts', covers: { ToolTransform: 'input inputDelta output error approval suspend' } },
  { file: 'test/memory/named-processors.test.ts', covers: { MessageHistory: 'lastMessages window window.low window.high storage limit' } },
  {
    file: recall,
    covers: {
      SemanticRecall: 'enabled topK messageRange messageRange.before messageRange.after scope filter indexConfig embedder vector',
    },
  },
  { file: 'test/memory/recall-window.test.ts', covers: { SemanticRecall: 'maxTokens maxWindowTokens' } },
  { file: 'test/memory/semantic-recall.test.ts', covers: { SemanticRecall: 'threshold' } },
  { file: 'src/processors/builtin/attachment-uploader.test.ts', covers: { AttachmentUploader: 'upload minBytes concurrency timeoutMs' } },
  { file: 'src/processors/builtin/regex-filter.test.ts', covers: { RegexFilter: 'presets rules strategy phases holdBack rules.name rules.pattern rules.replacement' } },
  { file: 'src/processors/builtin/text-scanner.test.ts', covers: { RegexFilter: 'rules.measure rules.opening' } },
  { file: 'src/processors/builtin/token-limiter.test.ts', covers: { TokenLimiter: 'limit strategy countTokens' } },
  { file: 'src/processors/builtin/tool-call-filter.test.ts', covers: { ToolCallFilter: 'exclude keepLast' } },
  { file: 'src/processors/builtin/unicode-normalizer.test.ts', covers: { UnicodeNormalizer: 'form stripControl collapseWhitespace preserveEmoji' } },
  { file: 'src/processors/builtin/browser-lane.test.ts', covers: { browserLane: 'read maxDeltas maxTabs' } },
  { file: 'src/processors/builtin/file-reminder.test.ts', covers: { fileReminder: 'files load tagType id' } },
  {
    file: 'src/processors/builtin/judges.test.ts',
    covers: {
      ModerationProcessor: 'judge.generate judge phases hold thoughts categories strategy',
      PIIDetector: 'judge.generate judge phases hold thoughts types strategy',
      PromptInjectionDetector: 'judge.generate judge strategy phases',
      SystemPromptScrubber: 'judge.generate judge hold thoughts prompt strategy placeholder',
    },
  },
  {
    file: 'src/processors/builtin/judge.test.ts',
    covers: {
      ModerationProcessor: 'threshold onFailure timeoutMs instructions clock',
      PIIDetector: 'threshold onFailure timeoutMs instructions clock',
      PromptInjectionDetector: 'threshold onFailure timeoutMs instructions clock',
      SystemPromptScrubber: 'threshold onFailure timeoutMs instructions clock',
    },
  },
  { file: 'src/testing/virtual-clock.test.ts', title: 'runAll gives up on a timer that sets itself anew', covers: { 'VirtualClock.runAll': 'limit' } },
  { file: 'src/testing/providers/provider-server.test.ts', covers: { providerServer: 'script loop pace clock', 'ProviderServer.script': 'loop' } },
  { file: 'test/sources/conformance.test.ts', covers: { sourceConformance: 'storage source things request happen' } },
  { file: 'test/http/tokens.test.ts', title: '[H3.5] have the two periods that the server chooses', covers: { jwt: 'maxKeyAgeSeconds maxOutageSeconds' } },
  { file: 'test/http/rights.test.ts', title: '[H8.2] those that are allowed have their effect, and the author of the agent can widen and narrow the list', covers: { Agent: 'remote remote.options' } },
  { file: 'test/http/rights.test.ts', title: '[H8.1] an end user reads, sends and runs', covers: { Agent: 'remote.approvals' } },
  { file: 'src/http/auth/policy.test.ts', title: '[V4.9] a principal is a user with its resources and scopes', covers: { apiKeys: 'scopes' } },
  {
    file: 'test/inspect/routes.test.ts',
    covers: {
      'HeedClient.listProcesses': 'agentId',
      'HeedClient.listNotifications': 'agentId resourceId threadId status priority source kind search limit after',
      'AgentClient.listRuns': 'threadId resourceId page perPage',
      'AgentClient.listSignals': 'threadId resourceId state limit before',
      'AgentClient.getStepPrompt': 'threadId resourceId runId step',
      'Memory.seekMessages': 'threadId resourceId around before after at perPage',
      'MemoryClient.seekMessages': 'threadId around before after at perPage',
    },
  },
  { file: 'test/http/replies.test.ts', covers: { 'HeedClient.listReplies': 'resourceId channelId threadId state limit after' } },
  { file: 'src/channel/adapters/standard-webhook.test.ts', covers: { standardWebhook: 'secret map replies replies.url replies.secret' } },
  { file: 'src/channel/adapters/twilio-sms.test.ts', covers: { twilioSms: 'authToken url accountSid from baseUrl' } },
  { file: 'src/channel/adapters/telegram-bot.test.ts', covers: { telegramBot: 'secretToken botToken baseUrl' } },
  { file: 'src/channel/adapters/slack-events.test.ts', covers: { slackEvents: 'signingSecret botToken botUserId baseUrl' } },
  { file: 'src/channel/adapters/email-webhook.test.ts', covers: { emailWebhook: 'secret authservId own map' } },
  { file: 'src/channel/adapters/direct-channel.test.ts', covers: { directChannel: 'kind send' } },
]

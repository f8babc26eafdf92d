import { checkNodeVersion } from './base/node-version.ts'

checkNodeVersion()

// The runtime
export { Heed } from './heed/heed.ts'
export type { CloseOptions, HeedConfig, HeedWorkflow, TickOptions, TickResult } from './heed/config.ts'
export type { AgentVoice } from './agent/voice/agent-voice.ts'
export type { ScoreBackfill, ScoreInput, ScoreListQuery, ScorePage, ScoreRetry } from './heed/scores.ts'
export type {
  AgentScorerEntry, AgentScorers, CallScorerEntry, CallScorers, ScoredEnd, ScorerFilter, ScorerFilterField, ScorerFilterTests,
  ScorerFilterValue, ScorerLike, ScorerSampling, ScorerSelection, StepScorers,
} from './scorers/contract.ts'
export type { ScoreQuery, ScoreRow, ScoreState } from './store/contract/scores.ts'
export type { RunLimits } from './thread/runtime/run-slots.ts'
export { Memory, type MemoryConfig } from './memory/memory.ts'
export type { ResourceMemory } from './memory/resource-memory.ts'
export type { ListThreadsArgs, NewThreadArgs, ThreadList, ThreadUpdate } from './memory/threads.ts'
export type { IncludedMessage, RecallArgs, RecalledMessages } from './memory/recall.ts'
export type { ExplainedRecall, ExplainRecallArgs, RecallExplanation } from './memory/semantic/explain.ts'
export type { ExplainedReason, ExplainedWord } from './recall/rank/explanation.ts'
export type {
  EmbedderStatus, IncompleteReason, MissingReason, RankedMessage, RecallHit, RecallProgress, RecallStatus,
} from './store/contract/recall.ts'
export type { VectorIndexSettings, VectorMatch, VectorMetric, VectorStore } from './recall/vector-store.ts'
export type { MetadataFilter } from './recall/filter/filter.ts'
export { ModelRouterEmbeddingModel, type AnyEmbeddingModel, type EmbedderInput } from './run/model/model-router.ts'
export type { DeleteMessagesArgs, SaveMessagesArgs, UpdateMessagesArgs } from './memory/writing.ts'
export type { ClonedThread, CloneMetadata, CloneThreadArgs } from './memory/clones.ts'
export type { WorkingMemoryTarget, WorkingMemoryUpdate, WorkingMemoryVersion } from './memory/working-memory/access.ts'

// Agents
export { Agent } from './agent/agent.ts'
export type { GenerateResult, StreamResult } from './agent/stream.ts'
export type { SuspendedTarget, ToolApproval } from './agent/approvals.ts'
export type { AgentConfig, AgentsInput, Dynamic, ProcessorWorkflow, RemoteOption, RemoteOptions } from './agent/config.ts'
export type { RunLike, RunOutcome, WorkflowLike, WorkflowsInput } from './agent/workflows.ts'
export type {
  ExplainOptions, LegacyOptions, LegacyOptions as AgentGenerateOptions, LegacyOptions as AgentStreamOptions,
} from './agent/options.ts'
export { AgentStream } from './agent/stream.ts'
export type { SuspendedRun, SuspendedRuns, SuspendedRunsFilter } from './agent/approvals.ts'
export { RequestContext } from './run/request-context.ts'
export {
  hasToolCall, stepCountIs, type AgentExecutionOptions, type MemoryOptions, type MemoryTarget, type SemanticRecallOptions,
  type StopCondition, type StructuredOutputOptions, type TitleOptions, type ToolChoice, type VectorIndexConfig, type WokenRunOptions,
  type WorkingMemoryOptions,
} from './run/options.ts'

// Tools
export { createTool, type ApprovalContext, type InputContext, type Tool, type ToolConfig, type ToolContext } from './run/tools/tool.ts'
export type { AISDKTool, ProviderTool } from './run/tools/tool-set.ts'
export type { ToolArgs, ToolInput, ToolOutput, ToolsInput } from './run/tools/tool-set.ts'
export type {
  ToolPayloadTransformPolicy, ToolTransform, TransformContext, TransformFunction, TransformPhase, TransformTarget,
} from './run/tools/payloads.ts'

// Models
export type { LanguageModel, ModelCandidate, ModelConfig, ModelId, ModelSettings } from './run/model/model.ts'

// Chunks and results of runs
export type {
  Chunk, Chunk as AgentChunkType, ChunkEnvelope, ChunkError, ChunkPayloads, ChunkSource, DataChunk, FinishPayload, FinishReason, RunChunk,
  StepFinishPayload, Usage, WatchEvent,
} from './message/chunk.ts'
export type { RunResult } from './run/output/run-result.ts'
export type { StepResult, ToolCall, ToolResult, WaitingCall } from './run/step/step-result.ts'

// Messages and prompts
export { MessageList, type MessageSource, type MessageView } from './message/list/list.ts'
export type { AgentInput, AgentMessage, ModelMessageInput, UIMessageInput } from './message/read/input.ts'
export type * from './message/message.ts'
export type { ProviderOptions as ProviderMetadata } from './message/message.ts'
export type { MessageRow, RowRole } from './message/row.ts'
export type { ModelToolOutput } from './message/message.ts'
export { fromUIMessages, type FromUIOptions } from './message/ui/from-ui.ts'
export { toUIMessages } from './message/ui/to-ui.ts'
export type { UIDocumentPart, UIFilePart, UIMessage, UIMetadata, UIPart, UIToolPart } from './message/ui/ui-message.ts'
export type { ExplainedHit, ExplainedPart, ExplainedPrompt, PromptSource } from './prompt/explain.ts'
export type { CommonPrefix, Fingerprint } from './prompt/explain.ts'
export { estimateTokens } from './prompt/tokens.ts'
export type { SystemMessage, SystemMessage as CoreSystemMessage, SystemMessageInput, SystemModelMessage } from './prompt/system.ts'

// Processors
export type * from './processors/processor.ts'

// Threads
export type { RunSendOptions, SendBranches, SendOptions, ThreadSendOptions } from './thread/send/options.ts'
export type { SendReceipt, SignalOutcome, StateReceipt } from './thread/send/receipt.ts'
export type { StateInput } from './signals/state.ts'
export type { SubscribeOptions } from './thread/stream/subscription.ts'
export type { AgentThreadSubscription, ThreadSnapshot } from './thread/stream/subscription.ts'
export type { Lane, LaneHistory, LaneSignal } from './thread/control/lanes.ts'
export type { QueuedSignal } from './thread/send/queue.ts'
export type { ExplainedSignal } from './thread/control/inspect.ts'
export type { ActiveBehavior, IdleBehavior, Route, SendMode, SignalState, ThreadStatus, Waiting } from './machine.ts'

// Several processes
export type { Bus, BusConnection, BusConnectOptions, BusHandler } from './bus/contract.ts'
export type { BusMessage, LiveEvent, LiveState } from './bus/message.ts'
export type { AbortAnswer } from './thread/cluster/peers.ts'
export type { AbortOptions } from './thread/control/abort.ts'

// Storage
export { InMemoryStore } from './store/sqlite/in-memory.ts'
export type * from './store/contract/threads.ts'
export type * from './store/contract/messages.ts'
export { CompositeStore, type CompositeStoreOptions } from './store/composite.ts'
export type { DomainStorage, Storage, StoreDomains } from './store/contract/storage.ts'
export type { Age, PruneOptions, PruneResult, Retention } from './store/retention.ts'

// Notifications
export type { NotificationInput } from './inbox/input.ts'
export type { NotificationsConfig, NotificationTarget } from './inbox/options.ts'
export type { DecideContext, DeliveryChoice, NotificationDeliveryDecision, NotificationDeliveryPolicyConfig } from './inbox/policy.ts'
export type { NotificationResult } from './inbox/settlement.ts'
export type { InboxSubscribeOptions, InboxSubscription } from './inbox/subscription.ts'
export { createNotificationInboxTool, type NotificationInboxAction, type NotificationInboxInput } from './inbox/tool.ts'
export type {
  ChangeQuery, Delivery, DeliveryFailure, Due, DueClaim, InboxChange, InboxChanges, InboxScope, Ingested, MarkedStatus, NewNotification,
  NotificationDeliveryAction, NotificationPriority, NotificationQuery, NotificationRecord, NotificationStatus, NotificationStore, Settled,
  Settlement, SettlementTerms, SummaryBatch, SummaryTime,
} from './store/contract/notifications.ts'

// Schedules
export type { AgentSchedules, ScheduleInput } from './agent/schedules.ts'
export type { ScheduleOptions } from './schedule/schedules.ts'
export type * from './store/contract/schedules.ts'

// Watches
export type { AgentWatchOptions } from './agent/watch-options.ts'
export type { AgentWatchQuery, AgentWatchScope, WatchDetails, WatchInput, WatchPage, WatchTarget, WatchToExplain } from './agent/watches.ts'
export type { Explained, SignalName } from './agent/inspect.ts'
export type { ExplainedMessage, ExplainedWatch, MessageReason } from './watch/explain.ts'
export type { Verdict, WatchEnd, WatchMode, WatchState } from './watch/machine.ts'
export type { Channels, ReplyListQuery } from './heed/channels.ts'
export type { NoReply, ReplyState } from './watch/replies/machine.ts'
export type { WatchLimitOptions } from './watch/watches.ts'
export type * from './store/contract/replies.ts'
export type * from './store/contract/watches.ts'

// Signals
export type { SignalInputType, SignalType } from './signals/signal.ts'
export type {
  CreatedAgentSignal, FileBytes, FileInput, MessageInput, MessageInputObject, Signal, SignalAttributes, SignalContents, SignalDataPart,
  SignalFilePart, SignalImagePart, SignalInput, SignalTextPart,
} from './signals/signal.ts'

// Errors, time, logs
export { HeedError, isHeedError, ToolError, type HeedErrorCode, type HeedErrorOptions } from './base/errors.ts'
export { systemClock, type Clock, type Timer } from './base/clock.ts'
export {
  consoleLogger, createConsoleLogger, silentLogger, type ConsoleLoggerOptions, type Logger, type LogFields, type LogLevel,
} from './base/logger.ts'
export type { TracingOptions } from './tracing/options.ts'
export type { JSONObject, JSONValue } from './base/json.ts'
export type { AISDKSchema, InferInput, InferOutput, PlainJSONSchema, Schema, StandardJSONSchemaV1 } from './schema/schema.ts'

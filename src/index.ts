// The runtime
export { Heed, type HeedConfig, type TickOptions, type TickResult } from './heed.ts'
export { Memory, type MemoryConfig } from './memory/memory.ts'
export type { ResourceMemory } from './memory/scoped.ts'
export type { ListThreadsArgs, NewThreadArgs, ThreadList, ThreadUpdate } from './memory/threads.ts'
export type { IncludedMessage, RecallArgs, RecalledMessages } from './memory/recall.ts'
export type { EmbedderStatus, RecallHit, RecallProgress, RecallStatus } from './store/recall.ts'
export type { MetadataFilter } from './recall/filter.ts'
export { ModelRouterEmbeddingModel, type AnyEmbeddingModel, type EmbedderInput } from './run/embedding-model.ts'
export type { DeleteMessagesArgs, SaveMessagesArgs, UpdateMessagesArgs } from './memory/writing.ts'
export type { ClonedThread, CloneMetadata, CloneThreadArgs } from './memory/clones.ts'
export type { WorkingMemoryTarget, WorkingMemoryUpdate, WorkingMemoryVersion } from './memory/working-memory/access.ts'

// Agents
export { Agent } from './agent/agent.ts'
export type { GenerateResult, StreamResult } from './agent/answers.ts'
export type { SuspendedTarget, ToolApproval } from './agent/approval.ts'
export type { AgentConfig, AgentsInput, Dynamic, LegacyOptions } from './agent/config.ts'
export { AgentStream } from './agent/stream.ts'
export type { SuspendedRun, SuspendedRuns, SuspendedRunsFilter } from './agent/suspended.ts'
export { RequestContext } from './run/request-context.ts'
export type {
  AgentExecutionOptions, MemoryOptions, MemoryTarget, ModelSettings, SemanticRecallOptions, StructuredOutputOptions, VectorIndexConfig, TitleOptions, ToolChoice, WorkingMemoryOptions,
} from './run/options.ts'
export { hasToolCall, stepCountIs, type StopCondition } from './run/stop.ts'

// Tools
export { createTool, type ApprovalContext, type InputContext, type Tool, type ToolConfig, type ToolContext } from './run/tool.ts'
export type { AISDKTool, ProviderTool } from './run/ai-sdk-tool.ts'
export type { ToolArgs, ToolInput, ToolOutput, ToolsInput } from './run/tool-set.ts'
export type { ToolPayloadTransformPolicy, ToolTransform, TransformContext, TransformFunction, TransformPhase, TransformTarget } from './run/transform.ts'

// Models
export type { LanguageModel, ModelCandidate, ModelConfig, ModelId } from './run/model.ts'

// What a run says, and what it comes to
export type {
  Chunk, ChunkEnvelope, ChunkError, ChunkPayloads, ChunkSource, DataChunk, FinishPayload, FinishReason, RunChunk, StepFinishPayload, Usage,
} from './run/chunk.ts'
export type { RunResult, WaitingCall } from './run/run-result.ts'
export type { StepResult, ToolCall, ToolResult } from './run/step-result.ts'

// Messages and prompts
export { MessageList, type MessageSource, type MessageView } from './message/list.ts'
export type { AgentInput, AgentMessage, ModelMessageInput, UIMessageInput } from './message/input.ts'
export type * from './message/message.ts'
export type { MessageRow, RowRole } from './message/row.ts'
export type { ModelToolOutput } from './message/tool-output.ts'
export { fromUIMessages, type FromUIOptions } from './message/from-ui.ts'
export { toUIMessages } from './message/ui.ts'
export type { UIDocumentPart, UIFilePart, UIMessage, UIMetadata, UIPart, UIToolPart } from './message/ui-message.ts'
export type { ExplainedHit, ExplainedPart, ExplainedPrompt, PromptSource } from './prompt/explain.ts'
export type { CommonPrefix, Fingerprint } from './prompt/prefix.ts'
export { estimateTokens } from './prompt/tokens.ts'
export type { SystemMessage, SystemMessageInput, SystemModelMessage } from './prompt/system.ts'

// Processors
export type * from './processors/processor.ts'

// Threads
export type { SendOptions } from './thread/sending.ts'
export type { SendReceipt, SignalOutcome, StateReceipt } from './thread/receipt.ts'
export type { StateInput } from './signals/state.ts'
export type { SubscribeOptions } from './thread/watching.ts'
export type { AgentThreadSubscription, ThreadSnapshot } from './thread/subscription.ts'
export type { Lane, LaneHistory, LaneSignal } from './thread/lanes.ts'
export type { QueuedSignal } from './thread/queue.ts'
export type { ExplainedSignal } from './thread/explaining.ts'
export type { ActiveBehavior, IdleBehavior, Route, SendMode, SignalState, ThreadStatus, Waiting } from './thread/machine.ts'

// Several processes
export type { Bus, BusListener, Seat } from './bus/contract.ts'
export type { BusMessage, LiveEvent, LiveState } from './bus/message.ts'
export type { AbortAnswer } from './thread/neighbours.ts'
export type { AbortOptions } from './thread/aborting.ts'

// Storage
export { InMemoryStore } from './store/memory/store.ts'
export type * from './store/contract.ts'
export type * from './store/conversations.ts'
export { CompositeStore, type CompositeStoreOptions } from './store/composite.ts'
export type { DomainStorage, Storage, StoreDomains } from './store/storage.ts'
export type { Age, PruneOptions, PruneResult, Retention } from './store/retention.ts'

// Notifications
export type { NotificationInput } from './inbox/input.ts'
export type { NotificationsConfig, NotificationTarget } from './inbox/options.ts'
export type { DecideContext, DeliveryChoice, NotificationDeliveryDecision, NotificationDeliveryPolicyConfig } from './inbox/policy.ts'
export type { NotificationResult } from './inbox/result.ts'
export type { InboxSubscribeOptions, InboxSubscription } from './inbox/subscription.ts'
export { createNotificationInboxTool, type NotificationInboxAction, type NotificationInboxInput } from './inbox/tool.ts'
export type * from './store/notifications.ts'

// Schedules
export type { AgentSchedules, ScheduleInput } from './agent/schedules.ts'
export type { ScheduleOptions } from './schedule/schedules.ts'
export type * from './store/schedules.ts'

// Signals
export type { SignalDataPart } from './signals/echo.ts'
export type { SignalInputType, SignalType } from './signals/kinds.ts'
export type {
  CreatedAgentSignal, FileBytes, FileInput, MessageInput, MessageInputObject, Signal, SignalAttributes, SignalContents, SignalFilePart, SignalImagePart,
  SignalInput, SignalTextPart,
} from './signals/signal.ts'

// Errors, time, logs
export { HeedError, isHeedError, type HeedErrorCode, type HeedErrorOptions } from './errors.ts'
export { systemClock, type Clock, type Timer } from './clock.ts'
export { consoleLogger, createConsoleLogger, silentLogger, type ConsoleLoggerOptions, type Logger, type LogFields, type LogLevel } from './logger.ts'
export type { TracingOptions } from './tracing/options.ts'
export type { JSONObject, JSONValue } from './json.ts'
export type { AISDKSchema, InferInput, InferOutput, PlainJSONSchema, Schema } from './schema/schema.ts'

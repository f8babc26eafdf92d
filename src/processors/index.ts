// Built-in processors: what agents need most often between their input, their model and their watchers.
export { AttachmentUploader, type AttachmentUploaderOptions, type UploadedAttachment } from './attachment-uploader.ts'
export { browserLane, type BrowserDelta, type BrowserLaneOptions, type BrowserState, type BrowserTab, type BrowserValue } from './browser-lane.ts'
export { fileReminder, type FileReminderOptions, type FinishedCall } from './file-reminder.ts'
export { PromptInjectionDetector, type PromptInjectionDetectorOptions } from './injection-detector.ts'
export type { JudgeModel, JudgeOptions } from './judge.ts'
export { ModerationProcessor, type ModerationOptions } from './moderation.ts'
export { PIIDetector, type PIIDetectorOptions } from './pii-detector.ts'
export { RegexFilter, type RegexFilterOptions, type RegexRule } from './regex-filter.ts'
export { regexPresets, type RegexPreset } from './regex-presets.ts'
export { SystemPromptScrubber, type SystemPromptScrubberOptions } from './system-prompt-scrubber.ts'
export { TokenLimiter, type TokenLimiterOptions } from './token-limiter.ts'
export { ToolCallFilter, type ToolCallFilterOptions } from './tool-call-filter.ts'
export { UnicodeNormalizer, type UnicodeNormalizerOptions } from './unicode-normalizer.ts'

// Memory's own, for agents that set them by hand.
export { MessageHistory, type MessageHistoryOptions } from '../memory/message-history.ts'
export { WorkingMemory } from '../memory/working-memory/processor.ts'
export { SemanticRecall } from '../memory/semantic-recall.ts'

// The contract, for processors of your own.
export type * from './processor.ts'

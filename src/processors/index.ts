// Built-in processors.
export { AttachmentUploader, type AttachmentUploaderOptions, type UploadedAttachment } from './builtin/attachment-uploader.ts'
export {
  browserLane, type BrowserDelta, type BrowserLaneOptions, type BrowserState, type BrowserTab, type BrowserValue,
} from './builtin/browser-lane.ts'
export { fileReminder, type FileReminderOptions, type FinishedCall } from './builtin/file-reminder.ts'
export { PromptInjectionDetector, type PromptInjectionDetectorOptions } from './builtin/injection-detector.ts'
export type { JudgeModel, JudgeOptions } from './builtin/judge.ts'
export { ModerationProcessor, type ModerationOptions } from './builtin/moderation.ts'
export { PIIDetector, type PIIDetectorOptions } from './builtin/pii-detector.ts'
export { RegexFilter, type RegexFilterOptions } from './builtin/regex-filter.ts'
export { regexPresets, type RegexPreset } from './builtin/regex-presets.ts'
export { SystemPromptScrubber, type SystemPromptScrubberOptions } from './builtin/system-prompt-scrubber.ts'
export type { RegexRule } from './builtin/text-scanner.ts'
export { TokenLimiter, type TokenLimiterOptions } from './builtin/token-limiter.ts'
export { ToolCallFilter, type ToolCallFilterOptions } from './builtin/tool-call-filter.ts'
export { UnicodeNormalizer, type UnicodeNormalizerOptions } from './builtin/unicode-normalizer.ts'

// Memory's processors, for agents that configure them explicitly.
export { MessageHistory, type MessageHistoryOptions } from '../memory/processors.ts'
export { WorkingMemory } from '../memory/processors.ts'
export { SemanticRecall } from '../memory/processors.ts'

// The contract of custom processors.
export type * from './processor.ts'

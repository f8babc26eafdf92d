export { HeedEditor } from './editor.ts'
export type {
  DeletionInput, DraftInput, EditableAgent, EditedAgent, EditedAgentSummary, EditorHost, EditPageQuery, EditRequest, PreviewedInstructions,
  PreviewInput, ReleaseInput, RollbackInput, SavedVersion,
} from './editor.ts'
export { PromptBlocks } from './prompt-blocks.ts'
export type {
  BlockRequest, DescribedPromptBlock, PromptBlockDraft, PromptBlockPublication, PromptBlockRelease, PromptBlockVersion, SavedPromptBlock,
} from './prompt-blocks.ts'
export type { EditDifference, PromptBlockDifference } from './compare.ts'
export type { RenderedBlock } from './instructions.ts'
export type {
  AgentOverrides, AgentVersion, ContextCondition, ContextRules, ContextValue, Editable, EditAuthor, EditStore, InstructionBlock,
  PlainToolOverride, PromptBlock, Release, ReleaseRule, RunEdit, ToolOverride, ToolVariant, VersionDeletion,
} from './contract.ts'

export { HeedEditor } from './editor.ts'
export type {
  DraftInput, EditableAgent, EditedAgent, EditorHost, EditPageQuery, EditRequest, ReleaseInput, RollbackInput, SavedVersion,
} from './editor.ts'
export type { EditDifference } from './compare.ts'
export type {
  AgentOverrides, AgentVersion, Editable, EditAuthor, EditStore, Release, ReleaseRule, RunEdit, ToolOverride,
} from './contract.ts'

import { checkNames, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { AgentExecutionOptions } from '../run/options.ts'
import type { RequestContext } from '../run/request-context.ts'
import type { ToolSet } from '../run/tools/tool-set.ts'
import type {
  Editable, EditorFields, EditStore, PlainToolOverride, ResolvedOverrides, RunEdit, RunEditor, RunToEdit,
} from './contract.ts'
import { countingOverrides, storablePart } from './machine.ts'

/** Where a run has its thread, or would have one. */
interface RunSite {
  readonly editor?: RunEditor | undefined
  readonly logger: Logger
  readonly threads: { open(): Promise<unknown>; readonly store: EditStore }
}

interface RunAtSite {
  /** The lease of its thread; absent for a run without one. */
  fence?: unknown
  /** What was stored when it began on a thread. */
  edit?: RunEdit | undefined
  threadId?: string
  resourceId?: string
}

type RunOptions = Pick<AgentExecutionOptions, 'agentVersion'> & { requestContext: RequestContext }

/** What is known of an agent when a run of it begins. */
interface EditedAgent {
  id: string
  editable?: Editable
  signalTags?: readonly string[]
  /** The keys that it declares in `requestContextSchema`. */
  contextKeys?(): Promise<readonly string[]>
}

/** What an editor may change of an agent, by its parameter `editor`. */
export function editableOf(editor: false | EditorFields | undefined): Editable {
  if (editor === undefined) return { instructions: true, tools: 'membership' }
  if (editor === false) return { instructions: false, tools: false }
  const { instructions = false, tools = false } = editor
  if (typeof tools === 'boolean') return { instructions, tools: tools && 'membership' }
  return { instructions, tools: tools.description === true && 'descriptions' }
}

export function checkEditor(editor: unknown, agent: string): void {
  if (editor === undefined || editor === false) return
  const of = `editor of agent '${agent}'`
  if (typeof editor !== 'object' || editor === null || Array.isArray(editor)) throw refused(of, 'false, or { instructions, tools }')
  checkNames(of, editor, ['instructions', 'tools'])
  const { instructions, tools } = editor as Record<string, unknown>
  if (instructions !== undefined && typeof instructions !== 'boolean') throw refused(`${of}: instructions`, 'true or false')
  if (tools === undefined || typeof tools === 'boolean') return
  checkNames(`${of}: tools`, tools, ['description'])
  const { description } = tools as { description?: unknown }
  if (description !== undefined && typeof description !== 'boolean') throw refused(`${of}: tools.description`, 'true or false')
}

/** What a run gets of an editor. */
export interface AppliedEdit {
  edit: RunEdit
  /** Those that code lets count, for this request. */
  overrides: Omit<ResolvedOverrides, 'unset'>
  /** Called with the names of tools that are overridden and that code no longer offers. */
  onGone(names: readonly string[]): void
}

/**
 * The version that a run has: on a thread, the one that was stored when it began. Undefined where the agent is not edited. Rejects where
 * the version cannot be read: a run never falls back to other instructions than its own.
 */
export async function resolveEdit(
  agent: EditedAgent, options: RunOptions, site: RunSite, run: RunAtSite,
): Promise<AppliedEdit | undefined> {
  const { editor } = site
  const { id, editable } = agent
  const { agentVersion } = options
  if (!editor || !editable || (!editable.instructions && editable.tools === false)) {
    if (agentVersion === undefined) return undefined
    const why = editor ? 'its code lets nothing be edited' : 'its Heed has no editor'
    throw new HeedError('edit_locked', `Agent '${id}' has no versions: ${why}. Leave agentVersion out.`, { details: { agentId: id } })
  }
  if (run.fence && !run.edit) return undefined
  await site.threads.open()
  const { store } = site.threads
  const context = storablePart(options.requestContext.entries())
  const edit = run.edit ?? (await store.editOfRun(withIds({ agentId: id, context }, run), agentVersion)) ?? { version: 0 }
  const keys = (await agent.contextKeys?.()) ?? []
  const asked = { agentId: id, edit, context, keys, tags: agent.signalTags ?? [] }
  const { unset, ...found } = await editor.overridesFor(store, asked).catch((error: unknown): never => {
    throw unread(error, id, edit.version)
  })
  const warn = (message: string, more: Record<string, string>) => {
    if (editor.isReported(store, JSON.stringify([message, id, edit]))) return
    site.logger.warn(message, { agentId: id, version: edit.version, ...more })
  }
  if (unset.length > 0) warn(unsetValues, { values: unset.join(', ') })
  return { edit, overrides: countingOverrides(found, editable), onGone: (tools) => warn(goneTools, { tools: tools.join(', ') }) }
}

const goneTools = 'a version of an agent names tools that its code no longer offers; they are left out'
const unsetValues = 'a version of an agent has templates without a value or a default; they stay as they are written'

/** A version that does not exist is named. Every other failure is of the storage: the same call may succeed later. */
function unread(error: unknown, agentId: string, version: number): unknown {
  if (error instanceof HeedError && (error.code === 'unknown_version' || error.retryable)) return error
  const message = `Version ${version} of agent '${agentId}' could not be read, and a run does not begin with other instructions. Try again.`
  return new HeedError('store_failed', message, { cause: error, retryable: true, details: { agentId, version } })
}

function withIds(run: RunToEdit, { threadId, resourceId }: RunAtSite): RunToEdit {
  return { ...run, ...(threadId !== undefined && { threadId }), ...(resourceId !== undefined && { resourceId }) }
}

/** The tools of a run with overrides of those that code offers: they are taken out or described otherwise, and never added. */
export function editTools(tools: ToolSet, own: ReadonlySet<string>, { overrides, onGone }: AppliedEdit): ToolSet {
  const entries = Object.entries(overrides.tools ?? {})
  if (entries.length === 0) return tools
  const gone = entries.filter(([name]) => !own.has(name)).map(([name]) => name)
  if (gone.length > 0) onGone(gone)
  const counting = new Map<string, PlainToolOverride>(entries.filter(([name]) => own.has(name)))
  return {
    tools: new Map([...tools.tools].filter(([name]) => counting.get(name) !== false)),
    definitions: tools.definitions.flatMap((definition) => {
      const override = counting.get(definition.name)
      if (override === false) return []
      return override && definition.type === 'function' ? { ...definition, description: override.description } : definition
    }),
  }
}

import { HeedError } from '../../base/errors.ts'
import type { JSONObject } from '../../base/json.ts'
import { createTool, type Tool } from '../../run/tools/tool.ts'
import type { ThreadStore, WorkingMemoryOf, WorkingMemoryWriter } from '../../store/contract/threads.ts'
import { patchInput, pathOf } from './patch-schema.ts'
import type { WorkingMemorySetting } from './setting.ts'
import { toolName } from './tool-name.ts'
import { wholeCheck } from './whole-check.ts'

/** Where a run's working memory is, and with what right the run changes it. */
export interface WorkingMemorySeat {
  store: ThreadStore
  of: WorkingMemoryOf
  by: WorkingMemoryWriter
}

/**
 * The tool with which a model changes its working memory. Without a seat it is only described. Running it again after a crash is the
 * same change.
 */
export async function workingMemoryTool(setting: WorkingMemorySetting, seat: WorkingMemorySeat | undefined): Promise<Tool> {
  const { form, maxLength } = setting
  const text = 'template' in form
  const check = text ? undefined : wholeCheck(form.schema)
  return createTool({
    id: toolName,
    description: text
      ? 'Replaces your working memory with a new text. Pass all of it, in the form you were told.'
      : 'Changes fields of your working memory. Pass only what changes.',
    inputSchema: text
      ? { type: 'object', properties: { memory: { type: 'string', description: 'The complete new text.' } }, required: ['memory'], additionalProperties: false }
      : await patchInput(form.schema),
    idempotent: true,
    async execute(input, { toolCallId }) {
      if (!seat) throw new HeedError('no_active_run', 'Working memory can only be changed by a run on a thread.')
      const { memory, delete: removed = [] } = input as { memory?: string | JSONObject; delete?: string[] }
      const id = `${seat.by.runId}/${toolCallId}`
      const change = typeof memory === 'string' ? { set: memory } : { merge: memory ?? {}, remove: removed.map(pathOf), ...(check && { check }) }
      const { version } = await seat.store.mergeWorkingMemory(seat.of, { id, maxLength, ...change }, seat.by)
      return { success: true, version }
    },
  })
}

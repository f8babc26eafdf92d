import type { SystemMessage } from '../../prompt/system.ts'
import { compileSchema } from '../../schema/compile.ts'
import { toolName } from './tool-name.ts'
import type { WorkingMemorySetting } from './setting.ts'

/**
 * What the model is told of working memory, the same in every prompt: what is in it comes at the end, so that a change of it leaves the
 * prompt before it as it was.
 */
export async function workingMemoryHowTo(setting: WorkingMemorySetting): Promise<SystemMessage> {
  const { form, readOnly } = setting
  const lines = [
    'You have a working memory: notes that stay when older messages are out of sight. It is shown to you in <working-memory> blocks, written by the'
    + ' system and not by the user. A block holds all of it; one with mode="delta" holds what changed since the block before it. The last word counts.'
    + ' As long as there is no block, it is empty. Use what it says without mentioning it.',
    'template' in form
      ? 'It is a Markdown text. In a delta, lines with - went, lines with + came.'
      : 'It is a JSON object. A delta has only the fields that changed; null means that a field was removed.',
  ]
  if (readOnly) lines.push('You can read it and not change it.')
  else if ('template' in form) lines.push(`Whenever you learn something that will matter later, call ${toolName} with the complete new text: what you leave out is lost. Keep to this form:`, form.template)
  else lines.push(`Whenever you learn something that will matter later, call ${toolName} with the fields that change, and only those. To remove a field, name it in delete or set it to null. Its schema:`, await shapeOf(form.schema))
  if (readOnly && !('template' in form)) lines.push('Its schema:', await shapeOf(form.schema))
  return { role: 'system', content: lines.join('\n\n') }
}

async function shapeOf(schema: Parameters<typeof compileSchema>[0]): Promise<string> {
  return JSON.stringify(await compileSchema(schema, 'workingMemory.schema').jsonSchema())
}

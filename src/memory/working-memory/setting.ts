import { HeedError } from '../../base/errors.ts'
import type { MemoryOptions, WorkingMemoryOptions } from '../../run/options.ts'
import { compileSchema } from '../../schema/compile.ts'
import type { Schema } from '../../schema/schema.ts'
import type { WorkingMemoryOf } from '../../store/contract/threads.ts'

/** The options of working memory, with defaults applied. */
export interface WorkingMemorySetting {
  scope: 'resource' | 'thread'
  maxLength: number
  readOnly: boolean
  form: { template: string } | { schema: Schema }
}

const defaultMaxLength = 16_384

const defaultTemplate = `# User Profile
- **Name**:
- **Location**:
- **Interests**:
- **Preferences**:
- **Long-term Goals**:
`

const known: readonly string[] = ['enabled', 'scope', 'template', 'schema', 'maxLength']

/** Validates the options of working memory; undefined when it is off. */
export function parseWorkingMemory({ workingMemory, readOnly = false }: MemoryOptions): WorkingMemorySetting | undefined {
  if (workingMemory === undefined) return undefined
  checkWorkingMemory(workingMemory)
  const { enabled = true, scope = 'resource', template, schema, maxLength = defaultMaxLength } = workingMemory
  if (!enabled) return undefined
  return { scope, maxLength, readOnly, form: schema === undefined ? { template: template ?? defaultTemplate } : { schema } }
}

/** Like `parseWorkingMemory`; throws when working memory is off. */
export function requireWorkingMemory(options: MemoryOptions): WorkingMemorySetting {
  const setting = parseWorkingMemory(options)
  if (!setting)
    throw invalidOption(
      'This memory',
      'has no working memory. Turn it on: new Memory({ workingMemory: { enabled: true } })',
      'workingMemory',
    )
  return setting
}

function checkWorkingMemory(options: unknown): asserts options is WorkingMemoryOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw invalidOption('workingMemory', 'must be an object: workingMemory: { enabled: true }')
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue
    throw new HeedError('unsupported_option', `workingMemory has no '${key}'. Known: ${known.join(', ')}.`, {
      details: { option: `workingMemory.${key}` },
    })
  }
  const { enabled, scope, template, schema, maxLength } = options as Record<keyof WorkingMemoryOptions, unknown>
  if (enabled !== undefined && typeof enabled !== 'boolean') throw invalidOption('workingMemory.enabled', 'must be true or false')
  if (scope !== undefined && scope !== 'resource' && scope !== 'thread') {
    throw invalidOption('workingMemory.scope', "must be 'resource' or 'thread'")
  }
  if (template !== undefined && schema !== undefined) {
    throw invalidOption('workingMemory', 'has a template and a schema. It is either a text or an object: remove one')
  }
  if (template !== undefined && (typeof template !== 'string' || template.trim() === '')) {
    throw invalidOption('workingMemory.template', 'must be a string that is not empty')
  }
  if (maxLength !== undefined && !(Number.isInteger(maxLength) && Number(maxLength) > 0)) {
    throw invalidOption('workingMemory.maxLength', 'must be a whole number above 0')
  }
  if (schema !== undefined) compileSchema(schema, 'workingMemory.schema')
}

/** The thread or resource that owns the working memory. */
export function workingMemoryOwner(
  { scope }: WorkingMemorySetting,
  target: { threadId?: string | undefined; resourceId?: string | undefined },
): WorkingMemoryOf {
  const { threadId, resourceId } = target
  if (scope === 'resource') {
    if (resourceId === undefined || resourceId === '') throw missing('resourceId', 'resource')
    return { scope, resourceId }
  }
  if (threadId === undefined || threadId === '') throw missing('threadId', 'thread')
  return { scope, threadId, ...(resourceId === undefined ? {} : { resourceId }) }
}

function missing(field: string, scope: string): HeedError {
  return new HeedError('invalid_argument', `${field} is missing: this working memory belongs to a ${scope}.`, { details: { field } })
}

function invalidOption(subject: string, why: string, option = subject): HeedError {
  return new HeedError('invalid_argument', `${subject} ${why}.`, { details: { option } })
}

import type { JSONSchema7 } from '@ai-sdk/provider'
import { describe, HeedError } from '../base/errors.ts'
import type { Validation } from './schema.ts'

/** A validator for plain JSON Schema. Ajv is loaded with the first such schema: most programs never need it. */
export async function jsonSchemaValidator({ $schema: draft, ...schema }: JSONSchema7): Promise<(value: unknown) => Validation> {
  const Ajv = await validatorOf(draft)
  const ajv = new Ajv({ allErrors: true, strict: false, logger: false })
  let check: ReturnType<typeof ajv.compile>
  try {
    check = ajv.compile(schema)
  } catch (cause) {
    throw new HeedError('invalid_schema', `JSON Schema can't be compiled: ${describe(cause)}`, { cause })
  }
  return (value) => {
    if (check(value)) return { ok: true, value }
    const issues = (check.errors ?? []).map((error) => ({
      path: error.instancePath.slice(1).replaceAll('/', '.'),
      message: error.message ?? 'is invalid',
    }))
    return { ok: false, issues }
  }
}

/** Tools of MCP servers mostly use the newest draft, whose keywords a validator for older drafts ignores. */
async function validatorOf(draft: string | undefined) {
  if (draft?.includes('2020-12')) return (await import('ajv/dist/2020.js')).Ajv2020
  if (draft?.includes('2019-09')) return (await import('ajv/dist/2019.js')).Ajv2019
  return (await import('ajv')).Ajv
}

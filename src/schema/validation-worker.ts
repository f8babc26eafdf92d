import type { JSONSchema7 } from '@ai-sdk/provider'
import { parentPort } from 'node:worker_threads'
import { describe } from '../base/errors.ts'
import { jsonSchemaValidator } from './compile.ts'
import type { ValidationAnswer } from './outside-validation.ts'
import type { Validation } from './schema.ts'

/** A run asks several times with one schema. */
const maxCompiled = 50
const compiled = new Map<string, (value: unknown) => Validation>()

async function validatorOf(schema: JSONSchema7): Promise<(value: unknown) => Validation> {
  const text = JSON.stringify(schema)
  const known = compiled.get(text)
  if (known) return known
  const validate = await jsonSchemaValidator(schema, { allErrors: false })
  if (compiled.size === maxCompiled) compiled.clear()
  compiled.set(text, validate)
  return validate
}

async function answer({ schema, value }: { schema: JSONSchema7; value: unknown }): Promise<ValidationAnswer> {
  try {
    return { validation: (await validatorOf(schema))(value) }
  } catch (error) {
    return { error: describe(error) }
  }
}

// oxlint-disable unicorn/require-post-message-target-origin -- a worker thread has no origin
parentPort?.on('message', async (question: { schema: JSONSchema7; value: unknown }) => parentPort?.postMessage(await answer(question)))
parentPort?.postMessage('ready')

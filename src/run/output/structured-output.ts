import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import type { JSONValue } from '../../base/json.ts'
import { compileSchema, describeIssues, type CompiledSchema } from '../../schema/compile.ts'
import { hasObjectRoot, wrappedField, wrapRoot } from '../../schema/object-root.ts'
import type { Validation } from '../../schema/schema.ts'
import type { StructuredOutputOptions } from '../options.ts'

/** An answer that has to be JSON of a given shape. */
export interface StructuredOutput {
  responseFormat: LanguageModelV4CallOptions['responseFormat']
  /** What is added to the instructions, for models that take no schema. */
  instruction: string | undefined
  /** The value, or what the model has to be told to do better. */
  read(text: string): Promise<{ ok: true; value: unknown } | { ok: false; problem: string }>
  /** What is certain of the value, of what is certain of the answer. */
  partOf(answer: JSONValue): JSONValue | undefined
}

/** A schema that is not one of an object is told to the model as that of an object with one field, since providers take no other; the value is what is in it. */
export async function structuredOutput(options: StructuredOutputOptions): Promise<StructuredOutput> {
  const compiled = compileSchema(options.schema, 'structuredOutput.schema')
  const shape = await compiled.jsonSchema()
  const plain = hasObjectRoot(shape)
  const schema = plain ? shape : wrapRoot(shape)
  return {
    responseFormat: {
      type: 'json',
      schema,
      ...(options.name === undefined ? {} : { name: options.name }),
      ...(options.description === undefined ? {} : { description: options.description }),
    },
    instruction: options.jsonPromptInjection ? `Answer only with JSON that matches this JSON Schema:\n${JSON.stringify(schema)}` : undefined,
    read: (text) => read(text, plain ? (value) => compiled.validate(value) : (value) => validateWrapped(value, compiled)),
    partOf: plain ? (answer) => answer : unwrappedPart,
  }
}

async function read(text: string, validate: CompiledSchema['validate']): Promise<{ ok: true; value: unknown } | { ok: false; problem: string }> {
  let value: unknown
  try {
    value = JSON.parse(unfenced(text) ?? text)
  } catch (error) {
    return { ok: false, problem: `it is not valid JSON (${(error as Error).message})` }
  }
  const checked = await validate(value)
  return checked.ok ? checked : { ok: false, problem: describeIssues(checked.issues) }
}

/** Models that aren't held to the schema may leave the object around the value out. */
async function validateWrapped(answer: unknown, schema: CompiledSchema): Promise<Validation> {
  if (typeof answer !== 'object' || answer === null || !Object.hasOwn(answer, wrappedField)) return schema.validate(answer)
  const inside = await schema.validate((answer as Record<string, unknown>)[wrappedField])
  if (inside.ok) return inside
  const whole = await schema.validate(answer)
  return whole.ok ? whole : inside
}

function unwrappedPart(answer: JSONValue): JSONValue | undefined {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return answer
  const [first] = Object.keys(answer)
  return first === wrappedField ? answer[wrappedField] : first === undefined ? undefined : answer
}

/** What is in the code block that models like to wrap JSON in, with or without words around it. */
function unfenced(text: string): string | undefined {
  const value = text.search(/[{["]/)
  const before = text.lastIndexOf(fence, value < 0 ? text.length : value)
  const close = text.lastIndexOf(fence)
  // A number or a word has no bracket of its own: its block is the first.
  const open = before === close ? text.indexOf(fence) : before
  if (open < 0 || open === close) return undefined
  const block = text.slice(open + fence.length, close)
  return (block.startsWith('json') ? block.slice('json'.length) : block).trim()
}

const fence = '```'

export function repairRequest(problem: string): string {
  return `The last answer can't be used: ${problem}. Answer again, only with JSON that matches the schema.`
}

export function structuredOutputError(problem: string, text: string, repaired: boolean): HeedError {
  const when = repaired ? ', also not after it was asked again' : ''
  return new HeedError('structured_output_invalid', `The model's answer does not match structuredOutput.schema${when}: ${problem}`, {
    details: { text: text.slice(0, 2000) },
  })
}

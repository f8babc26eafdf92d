import type { LanguageModelV4CallOptions } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import type { JSONObject, JSONValue } from '../../base/json.ts'
import { compileSchema, describeIssues, type CompiledSchema } from '../../schema/compile.ts'
import { hasObjectRoot, wrappedField, wrapRoot } from '../../schema/provider-schema.ts'
import type { Validation } from '../../schema/schema.ts'
import type { StructuredOutputOptions } from '../options.ts'

/** An answer that has to be JSON of a schema. */
export interface StructuredOutput {
  responseFormat: LanguageModelV4CallOptions['responseFormat']
  /** Added to the instructions, for models that don't support response schemas. */
  instruction: string | undefined
  /** Parses and validates an answer. `problem` is written for the model. */
  read(text: string): Promise<{ ok: true; value: unknown } | { ok: false; problem: string }>
  /** The known part of the value, from the known part of the answer. */
  partOf(answer: JSONValue): JSONValue | undefined
}

/** Providers accept object schemas only: the schema of another value is wrapped into that of an object with one field. */
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
    instruction: options.jsonPromptInjection
      ? `Answer only with JSON that matches this JSON Schema:\n${JSON.stringify(schema)}`
      : undefined,
    read: (text) => read(text, plain ? (value) => compiled.validate(value) : (value) => validateWrapped(value, compiled)),
    partOf: plain ? (answer) => answer : unwrappedPart,
  }
}

async function read(text: string, validate: CompiledSchema['validate']): ReturnType<StructuredOutput['read']> {
  let value: unknown
  try {
    value = JSON.parse(withoutFence(text) ?? text)
  } catch (error) {
    return { ok: false, problem: `it is not valid JSON (${(error as Error).message})` }
  }
  const checked = await validate(value)
  return checked.ok ? checked : { ok: false, problem: describeIssues(checked.issues) }
}

/** Models that ignore the schema may leave out the wrapping object. */
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

/** The content of the Markdown code block that models often wrap JSON in, with or without text around it. */
function withoutFence(text: string): string | undefined {
  const value = text.search(/[{["]/)
  const before = text.lastIndexOf(fence, value < 0 ? text.length : value)
  const close = text.lastIndexOf(fence)
  // A number or a literal has no bracket: its block is the first.
  const open = before === close ? text.indexOf(fence) : before
  if (open < 0 || open === close) return undefined
  const block = text.slice(open + fence.length, close)
  return (block.startsWith('json') ? block.slice('json'.length) : block).trim()
}

const fence = '```'

/** Parses a structured answer while it is streamed. */
export class GrowingObject {
  readonly #structured: StructuredOutput
  #parsedLength = 0
  #last = ''

  constructor(structured: StructuredOutput) {
    this.#structured = structured
  }

  /**
   * The object so far; nothing when it is as it was. Parses only when the text has grown by a thirty-second of its length, so that
   * the work stays in proportion to the length.
   */
  grow(text: string): JSONValue | undefined {
    if (text.length - this.#parsedLength < this.#parsedLength / 32) return undefined
    this.#parsedLength = text.length
    const answer = partialJSON(text)
    const object = answer === undefined ? undefined : this.#structured.partOf(answer)
    if (object === undefined) return undefined
    const json = JSON.stringify(object)
    if (json === this.#last) return undefined
    this.#last = json
    return object
  }
}

/** The message that asks the model for a valid answer. */
export function repairRequest(problem: string): string {
  return `The last answer can't be used: ${problem}. Answer again, only with JSON that matches the schema.`
}

export function structuredOutputError(problem: string, text: string, repaired: boolean): HeedError {
  const when = repaired ? ', also not after it was asked again' : ''
  return new HeedError('structured_output_invalid', `The model's answer does not match structuredOutput.schema${when}: ${problem}`, {
    details: { text: text.slice(0, 2000) },
  })
}

/**
 * Parses the object or array that an incomplete text begins with: strings grow, numbers and literals appear when they are complete.
 * Undefined when none has begun, or when the text is not JSON.
 */
export function partialJSON(text: string): JSONValue | undefined {
  const start = text.search(/[{[]/)
  if (start < 0) return undefined
  try {
    return new PartialParser(text, start).value()
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A model that only opens brackets must not exhaust the stack. */
const maxDepth = 200

class PartialParser {
  readonly #text: string
  #at: number
  #depth = 0

  constructor(text: string, at: number) {
    this.#text = text
    this.#at = at
  }

  /** Undefined when the text ends before the value is known. */
  value(): JSONValue | undefined {
    switch (this.#next()) {
      case undefined:
        return undefined
      case '{':
        return this.#nested(() => this.#object())
      case '[':
        return this.#nested(() => this.#list())
      case '"':
        return this.#string().text
      default:
        return this.#literal()
    }
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > maxDepth) throw new SyntaxError('too deep')
    const result = read()
    this.#depth--
    return result
  }

  #object(): JSONObject {
    const object: JSONObject = {}
    this.#at++
    for (let next = this.#next(); next !== undefined && next !== '}'; next = this.#next()) {
      if (next === ',') {
        this.#at++
        continue
      }
      const name = this.#string()
      if (!name.closed || this.#next() === undefined) return object
      this.#take(':')
      const value = this.value()
      // As JSON.parse does: '__proto__' is a plain property.
      if (value !== undefined) Object.defineProperty(object, name.text, { value, enumerable: true, configurable: true, writable: true })
    }
    this.#at++
    return object
  }

  #list(): JSONValue[] {
    const list: JSONValue[] = []
    this.#at++
    for (let next = this.#next(); next !== undefined && next !== ']'; next = this.#next()) {
      if (next === ',') {
        this.#at++
        continue
      }
      const value = this.value()
      if (value !== undefined) list.push(value)
    }
    this.#at++
    return list
  }

  #string(): { text: string; closed: boolean } {
    this.#take('"')
    const begin = this.#at
    for (; this.#at < this.#text.length; this.#at++) {
      const char = this.#text[this.#at]
      if (char === '\\') this.#at++
      else if (char === '"') return { text: JSON.parse(`"${this.#text.slice(begin, this.#at++)}"`) as string, closed: true }
    }
    this.#at = this.#text.length
    const whole = this.#text.slice(begin).replace(/(^|[^\\])((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$/, '$1$2')
    return { text: JSON.parse(`"${whole}"`) as string, closed: false }
  }

  #literal(): JSONValue | undefined {
    const [literal = ''] = /^[^\s,\]}]*/.exec(this.#text.slice(this.#at, this.#at + 64)) ?? []
    this.#at += literal.length
    if (this.#at >= this.#text.length) return undefined
    return JSON.parse(literal) as JSONValue
  }

  #next(): string | undefined {
    while (/\s/.test(this.#text[this.#at] ?? 'x')) this.#at++
    return this.#text[this.#at]
  }

  #take(char: string): void {
    if (this.#next() !== char) throw new SyntaxError(`expected ${char}`)
    this.#at++
  }
}

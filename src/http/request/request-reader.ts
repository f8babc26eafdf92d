import type { JSONSchema7 } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { describeIssues, jsonSchemaValidator } from '../../schema/compile.ts'
import type { Validation } from '../../schema/schema.ts'
import type { JSONSchema, ObjectSchema, Route } from '../route.ts'
import { checkContentType, parseBody, type HttpRequest } from './exchange.ts'
import { readIdempotencyKey } from './fields.ts'

export interface ParsedRequest {
  query: Record<string, unknown>
  body: Record<string, unknown>
  idempotencyKey: string | undefined
}

/** Parses the query and the body of requests to one route, and validates them against its schemas. */
export class RequestReader {
  readonly #maxBodyBytes: number
  readonly #query: RequestSchema | undefined
  readonly #body: RequestSchema | undefined
  readonly #send: boolean

  constructor({ query, body, send }: Route, maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
    this.#query = query && new RequestSchema(query, 'query')
    this.#body = body && new RequestSchema(body, 'body')
    this.#send = send === true
  }

  async read(request: HttpRequest): Promise<ParsedRequest> {
    let query: Record<string, unknown> = {}
    if (this.#query) {
      if (!this.#query.isCompiled) await this.#query.compile()
      if (request.search !== '') query = parseQuery(new URLSearchParams(request.search), this.#query.schema)
      this.#query.validate(query)
    }
    let body: Record<string, unknown> = {}
    if (this.#body) {
      checkContentType(request)
      body = parseBody(await request.text(this.#maxBodyBytes)) as Record<string, unknown>
      if (!this.#body.isCompiled) await this.#body.compile()
      this.#body.validate(body)
    }
    return { query, body, idempotencyKey: this.#send ? readIdempotencyKey(request) : undefined }
  }
}

type Validator = (value: unknown) => Validation

/** The schema of a query or body, compiled when it is first used. */
class RequestSchema {
  readonly schema: ObjectSchema
  readonly #part: 'query' | 'body'
  #compiling: Promise<Validator> | undefined
  #validator: Validator | undefined

  constructor(schema: ObjectSchema, part: 'query' | 'body') {
    this.schema = schema
    this.#part = part
  }

  get isCompiled(): boolean {
    return this.#validator !== undefined
  }

  async compile(): Promise<void> {
    this.#compiling ??= jsonSchemaValidator(this.schema as JSONSchema7)
    this.#validator = await this.#compiling
  }

  validate(value: unknown): void {
    if (!this.#validator) throw new Error('The schema is not compiled.')
    const validation = this.#validator(value)
    if (validation.ok) return
    // `anyOf` reports an issue for each alternative that does not match; the first few are enough.
    const issues = validation.issues.slice(0, 5)
    throw new HeedError('invalid_argument', `The ${this.#part} is invalid: ${describeIssues(issues)}.`, { details: { issues } })
  }
}

/**
 * The query as the schema types it: numbers and booleans as such, objects as JSON or as `name[key]=value`, lists of objects as JSON,
 * other lists as repeated or comma-separated values. A value that does not fit its type stays a string, so that validation reports it.
 */
function parseQuery(search: URLSearchParams, schema: ObjectSchema): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    const value = isJSON(property) ? parseObject(search, name, property) : parseValue(search.getAll(name), property)
    if (value !== undefined) query[name] = value
  }
  return query
}

function isJSON({ type, items }: JSONSchema): boolean {
  return type === 'object' || (type === 'array' && (items as JSONSchema | undefined)?.type === 'object')
}

function parseValue(values: readonly string[], property: JSONSchema): unknown {
  if (values.length === 0) return undefined
  if (property.type === 'array') return values.flatMap((value) => value.split(',')).filter((value) => value !== '')
  const [value = ''] = values
  const types: readonly unknown[] = Array.isArray(property.type) ? property.type : [property.type]
  if (types.includes('boolean') && (value === 'true' || value === 'false')) return value === 'true'
  if ((types.includes('integer') || types.includes('number')) && value.trim() !== '' && Number.isFinite(Number(value))) return Number(value)
  return value
}

function parseObject(search: URLSearchParams, name: string, property: JSONSchema): unknown {
  const json = search.get(name)
  if (json !== null) {
    try {
      return JSON.parse(json) as unknown
    } catch (cause) {
      throw new HeedError('invalid_argument', `The query parameter ${name} is not JSON.`, { cause, details: { field: name } })
    }
  }
  const properties = (property.properties ?? {}) as Record<string, JSONSchema>
  const entries = Object.entries(properties).flatMap(([key, schema]) => {
    const value = parseValue(search.getAll(`${name}[${key}]`), schema)
    return value === undefined ? [] : [[key, value] as const]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

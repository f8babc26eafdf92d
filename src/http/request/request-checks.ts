import type { JSONSchema7 } from '@ai-sdk/provider'
import { HeedError } from '../../base/errors.ts'
import { describeIssues } from '../../schema/compile.ts'
import { jsonSchemaValidator } from '../../schema/json-schema.ts'
import type { Validation } from '../../schema/schema.ts'
import type { Asked } from './exchange.ts'
import { checkType, parseBody } from './read-body.ts'
import { readQuery } from './read-query.ts'
import type { ObjectSchema, Route } from '../route.ts'

const keyForm = /^[\x21-\x7e]{1,200}$/

type Check = (value: unknown) => Validation

export interface ReadRequest {
  query: Record<string, unknown>
  body: Record<string, unknown>
  idempotencyKey: string | undefined
}

/** Reads a request as its route describes it, and refuses what doesn't fit. */
export class RequestChecks {
  readonly #maxBodyBytes: number
  readonly #query: Shape | undefined
  readonly #body: Shape | undefined
  readonly #send: boolean

  constructor({ query, body, send }: Route, maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
    this.#query = query && new Shape(query, 'query')
    this.#body = body && new Shape(body, 'body')
    this.#send = send === true
  }

  async read(asked: Asked): Promise<ReadRequest> {
    let query: Record<string, unknown> = {}
    if (this.#query) {
      if (!this.#query.isReady) await this.#query.prepare()
      if (asked.search !== '') query = readQuery(new URLSearchParams(asked.search), this.#query.schema)
      this.#query.check(query)
    }
    let body: Record<string, unknown> = {}
    if (this.#body) {
      checkType(asked)
      body = parseBody(await asked.text(this.#maxBodyBytes)) as Record<string, unknown>
      if (!this.#body.isReady) await this.#body.prepare()
      this.#body.check(body)
    }
    return { query, body, idempotencyKey: this.#send ? idempotencyKey(asked) : undefined }
  }
}

/** What a part of a request has to look like. Compiled when it is first needed. */
class Shape {
  readonly schema: ObjectSchema
  readonly #place: 'query' | 'body'
  #compiling: Promise<Check> | undefined
  #check: Check | undefined

  constructor(schema: ObjectSchema, place: 'query' | 'body') {
    this.schema = schema
    this.#place = place
  }

  get isReady(): boolean {
    return this.#check !== undefined
  }

  async prepare(): Promise<void> {
    this.#compiling ??= jsonSchemaValidator(this.schema as JSONSchema7)
    this.#check = await this.#compiling
  }

  check(value: unknown): void {
    if (!this.#check) throw new Error('not prepared')
    refuse(this.#place, this.#check(value))
  }
}

function refuse(place: 'query' | 'body', checked: Validation): void {
  if (checked.ok) return
  // Alternatives report every way in which none of them fits; the first few say enough.
  const issues = checked.issues.slice(0, 5)
  throw new HeedError('invalid_argument', `The ${place} is not as this route wants it: ${describeIssues(issues)}.`, { details: { issues } })
}

function idempotencyKey(asked: Asked): string | undefined {
  const key = asked.header('idempotency-key')
  if (key === null) return undefined
  if (!keyForm.test(key)) throw new HeedError('invalid_argument', 'Idempotency-Key must be 1 to 200 printable characters without spaces.', { details: { field: 'Idempotency-Key' } })
  return key
}

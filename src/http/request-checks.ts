import type { JSONSchema7 } from '@ai-sdk/provider'
import { HeedError } from '../errors.ts'
import { describeIssues } from '../schema/compile.ts'
import { jsonSchemaValidator } from '../schema/json-schema.ts'
import type { Validation } from '../schema/schema.ts'
import type { Asked } from './exchange.ts'
import { readBody } from './read-body.ts'
import { readQuery } from './read-query.ts'
import type { ObjectSchema, Route } from './route.ts'

const keyForm = /^[\x21-\x7e]{1,200}$/

type Check = (value: unknown) => Validation

/** Reads a request as its route describes it, and refuses what doesn't fit. */
export class RequestChecks {
  readonly #route: Route
  readonly #maxBodyBytes: number
  #query: Promise<Check> | undefined
  #body: Promise<Check> | undefined

  constructor(route: Route, maxBodyBytes: number) {
    this.#route = route
    this.#maxBodyBytes = maxBodyBytes
  }

  async read(asked: Asked): Promise<{ query: Record<string, unknown>; body: Record<string, unknown>; idempotencyKey: string | undefined }> {
    const { query: querySchema, body: bodySchema, send } = this.#route
    let query: Record<string, unknown> = {}
    if (querySchema) {
      query = asked.search === '' ? {} : readQuery(new URLSearchParams(asked.search), querySchema)
      this.#query ??= validator(querySchema)
      refuse('query', (await this.#query)(query))
    }
    let body: Record<string, unknown> = {}
    if (bodySchema) {
      const value = await readBody(asked, this.#maxBodyBytes)
      this.#body ??= validator(bodySchema)
      refuse('body', (await this.#body)(value))
      body = value as Record<string, unknown>
    }
    return { query, body, idempotencyKey: send ? idempotencyKey(asked) : undefined }
  }
}

function validator(schema: ObjectSchema): Promise<Check> {
  return jsonSchemaValidator(schema as JSONSchema7)
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

import type { JSONSchema7 } from '@ai-sdk/provider'
import type { StandardJSONSchemaV1 as JSONSchemaSpec, StandardSchemaV1 } from '@standard-schema/spec'

/** A schema that converts itself to JSON Schema, by the interface of `@standard-schema/spec`. */
export type StandardJSONSchemaV1<Input = unknown, Output = Input> = JSONSchemaSpec<Input, Output>

/**
 * A schema of a value: a Standard Schema (Zod, Valibot, ArkType, …), an AI SDK schema, or plain JSON Schema. A Standard Schema must also
 * convert to JSON Schema, which models receive.
 */
export type Schema<Input = unknown, Output = Input> =
  | StandardSchemaV1<Input, Output>
  | StandardJSONSchemaV1<Input, Output>
  | AISDKSchema<Output>
  | PlainJSONSchema

/** The schema object of the `ai` package (`jsonSchema()`, `zodSchema()`, `asSchema()`). */
export interface AISDKSchema<Output = unknown> {
  readonly _type: Output
  readonly jsonSchema: JSONSchema7 | PromiseLike<JSONSchema7>
  readonly validate?: (
    value: unknown,
  ) => AISDKValidation<Output> | PromiseLike<AISDKValidation<Output>>
}

type AISDKValidation<Output> = { success: true; value: Output } | { success: false; error: Error }

/** Plain JSON Schema. The type of its values is `unknown`; they are validated all the same. */
export type PlainJSONSchema = { readonly [keyword: string]: unknown } & (
  | { readonly type: JSONType | readonly JSONType[] }
  | { readonly properties: object }
  | { readonly anyOf: readonly object[] }
  | { readonly oneOf: readonly object[] }
  | { readonly allOf: readonly object[] }
  | { readonly enum: readonly unknown[] }
  | { readonly $ref: string }
)

type JSONType = 'object' | 'string' | 'number' | 'integer' | 'boolean' | 'array' | 'null'

/** The type of a value before validation. */
export type InferInput<S> = S extends StandardSchemaV1<infer Input, unknown> ? Input
  : S extends StandardJSONSchemaV1<infer Input, unknown> ? Input
  : S extends AISDKSchema<infer Output> ? Output
  : unknown

/** The type of a value after validation. */
export type InferOutput<S> = S extends StandardSchemaV1<unknown, infer Output> ? Output
  : S extends StandardJSONSchemaV1<unknown, infer Output> ? Output
  : S extends AISDKSchema<infer Output> ? Output
  : unknown

export type Validation<Output = unknown> = { ok: true; value: Output } | { ok: false; issues: Issue[] }

export interface Issue {
  /** `address.city`, or empty for the value itself. */
  path: string
  message: string
}

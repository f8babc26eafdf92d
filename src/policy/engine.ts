import { packageError } from '../base/errors.ts'

/** The package that evaluates policies. */
export const cedarPackage = '@cedar-policy/cedar-wasm'

/** What Cedar reports about a text: offsets are in bytes of its UTF-8 form. */
export interface CedarError {
  message: string
  help?: string | null
  sourceLocations?: ReadonlyArray<{ label?: string | null; start: number; end: number }>
}

interface EntityId {
  type: string
  id: string
}

/** An entity, as Cedar has it. */
export interface CedarEntity {
  uid: EntityId
  attrs: Record<string, unknown>
  parents: EntityId[]
}

/** A question to Cedar. */
export interface CedarRequest {
  principal: EntityId
  action: EntityId
  resource: EntityId
  context: Record<string, unknown>
  entities: CedarEntity[]
}

interface CedarPolicySet {
  staticPolicies: string | Record<string, string>
}

type CedarFailure = { type: 'failure'; errors: CedarError[] }

/** The functions of `@cedar-policy/cedar-wasm` that Heed calls. None of them throws for a bad policy. */
export interface CedarEngine {
  preparseSchema(name: string, schema: string): { type: 'success' } | CedarFailure
  preparsePolicySet(id: string, policies: CedarPolicySet): { type: 'success' } | CedarFailure
  validate(call: { schema: string; policies: CedarPolicySet }):
    | { type: 'success'; validationErrors: CedarFinding[]; validationWarnings: CedarFinding[]; otherWarnings: CedarError[] }
    | CedarFailure
  policySetTextToParts(text: string): { type: 'success'; policies: string[]; policy_templates: string[] } | CedarFailure
  policyToJson(policy: string): { type: 'success'; json: { annotations?: Record<string, string>; conditions?: unknown } } | CedarFailure
  statefulIsAuthorized(
    call: CedarRequest & { preparsedSchemaName: string; preparsedPolicySetId: string; validateRequest: boolean },
  ):
    | { type: 'success'; response: { decision: 'allow' | 'deny'; diagnostics: { reason: string[]; errors: CedarFinding[] } } }
    | CedarFailure
}

/** What Cedar found wrong with a policy. */
export interface CedarFinding {
  policyId: string
  error: CedarError
}

/** Loads the installed package. */
export async function loadCedar(): Promise<CedarEngine> {
  const name = `${cedarPackage}/nodejs`
  try {
    return (await import(name)) as CedarEngine
  } catch (cause) {
    throw packageError(cedarPackage, `Policies need the package ${cedarPackage}: npm install ${cedarPackage}.`, cause)
  }
}

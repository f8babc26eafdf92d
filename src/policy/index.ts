export { CedarPolicies } from './policies.ts'
export type { CedarPoliciesOptions, PolicyDecision, PolicyFailure, TenantPolicies } from './policies.ts'
export type { CheckedPolicies, PolicyProblem } from './check.ts'
export type { CedarEngine, CedarEntity, CedarError, CedarFinding, CedarRequest } from './engine.ts'
export type {
  AgentPrincipal, MessageSourceResource, PolicyContext, PolicyPrincipal, PolicyRequest, PolicyResource, ThreadResource, ToolResource,
  UserPrincipal, UserResource,
} from './request.ts'
export { defaultPolicies, policySchema } from './schema.ts'
export type { PolicyAction, PolicySet } from './schema.ts'
export { InMemoryPolicyStore } from './store.ts'
export type { PolicyStore, SavePoliciesOptions, StoredPolicies } from './store.ts'
export { FilePolicyStore } from './file-store.ts'
export type { FilePolicyStoreOptions } from './file-store.ts'

/** What a policy may decide about. */
export type PolicyAction = 'receive_signal' | 'receive_message' | 'send_signal' | 'approve_tool' | 'read_thread'

export const policyActions: readonly PolicyAction[] = ['receive_signal', 'receive_message', 'send_signal', 'approve_tool', 'read_thread']

/** Policies in the language of Cedar, by their ids: one policy each. */
export type PolicySet = Readonly<Record<string, string>>

/**
 * What policies may name, as a Cedar schema. A channel of the id `kind/instance` has the channel of the id `kind` as its parent, so that
 * `resource in Policy::Channel::"email"` covers every email channel.
 */
export const policySchema = `namespace Policy {
  entity User {
    scopes: Set<String>,
    resources: Set<User>,
    all_resources: Bool,
    operator: Bool,
  };
  entity Agent in [User];
  entity Channel in [Channel];
  entity Contact in [User];
  entity MessageSource in [Channel] {
    verified: Bool,
    sender?: Contact,
  };
  entity Thread in [User];
  entity Tool in [Agent];

  type Circumstances = {
    categories: Set<String>,
    tainted_by: Set<String>,
  };

  action receive_signal, receive_message appliesTo {
    principal: [Agent],
    resource: [MessageSource],
    context: Circumstances,
  };
  action send_signal, read_thread appliesTo {
    principal: [User, Agent],
    resource: [Thread, User],
    context: Circumstances,
  };
  action approve_tool appliesTo {
    principal: [User, Agent],
    resource: [Tool],
    context: Circumstances,
  };
}
`

/** The ids of these policies begin so, and no other ids do. */
export const defaultPrefix = 'heed.'

/**
 * The policies of every tenant unless `defaults` replaces them. Cedar denies what no policy permits, so these permit what Heed permits
 * without policies: everything. What a principal of the server may access is checked apart from them.
 */
export const defaultPolicies: PolicySet = Object.fromEntries(
  policyActions.map((action) => [`${defaultPrefix}${action}`, `permit(principal, action == Policy::Action::"${action}", resource);`]),
)

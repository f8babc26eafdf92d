import { checkName, checkNames, refused } from '../base/arguments.ts'
import type { CedarEntity, CedarRequest } from './engine.ts'
import { policyActions, type PolicyAction } from './schema.ts'

/** An agent that acts for a resource: the owner of the thread on which it runs. */
export interface AgentPrincipal {
  type: 'agent'
  id: string
  resourceId: string
}

/** A principal of the server, with the resources that it may access and the scopes of its credentials. */
export interface UserPrincipal {
  type: 'user'
  id: string
  resources?: readonly string[] | '*'
  operator?: boolean
  scopes?: readonly string[]
}

/** Who asks: an agent, or a user of the server. */
export type PolicyPrincipal = AgentPrincipal | UserPrincipal

/**
 * The sender of an inbound message, as policies see it: the channel and, if it is verified, the contact. There is no address in it, since
 * senders choose their addresses.
 */
export interface MessageSourceResource {
  type: 'message_source'
  channel: { kind: string; id: string }
  verified: boolean
  contactId?: string
}

/** A thread as the resource of a request. */
export interface ThreadResource {
  type: 'thread'
  id: string
  resourceId: string
}

/** The threads of a resource, all of them: lists and searches. */
export interface UserResource {
  type: 'user'
  id: string
}

/** A tool of an agent that acts for a resource. */
export interface ToolResource {
  type: 'tool'
  name: string
  agentId: string
  resourceId: string
}

/** What is asked for: a message, a thread, a user's data or a tool. */
export type PolicyResource = MessageSourceResource | ThreadResource | UserResource | ToolResource

/** What a request says besides principal, action and resource. */
export interface PolicyContext {
  /** The categories of the message; `unknown` while it has none. A request with `unknown` is denied if a policy may read them. */
  categories?: readonly string[] | 'unknown'
  /** Where values in the prompt came from that senders of messages chose, such as channels: `sms`, `sms/main`. */
  taintedBy?: readonly string[]
}

/** A question to the policies of a tenant. */
export interface PolicyRequest {
  tenant: string
  principal: PolicyPrincipal
  action: PolicyAction
  resource: PolicyResource
  context?: PolicyContext
}

/** The most elements of a set in a request. */
const maxElements = 1_000

/** The request as Cedar reads it. Throws if anything is missing that a rule could depend on: a rule must not be skipped for that. */
export function cedarRequest(request: PolicyRequest): CedarRequest {
  const { principal, action, resource, context = {} } = request
  checkNames('A request to policies', request, ['tenant', 'principal', 'action', 'resource', 'context'])
  checkNames('context', context, ['categories', 'taintedBy'])
  if (!policyActions.includes(action)) throw refused('action', `one of ${policyActions.join(', ')}`)
  const entities = new Entities()
  const principalId = entities.addPrincipal(principal)
  const resourceId = entities.addResource(resource, principal)
  return {
    principal: principalId,
    action: { type: 'Policy::Action', id: action },
    resource: resourceId,
    context: {
      categories: texts('context.categories', context.categories === 'unknown' ? [] : context.categories),
      tainted_by: texts('context.taintedBy', context.taintedBy),
    },
    entities: entities.all(),
  }
}

type EntityId = CedarEntity['uid']

/** The entities of one request. An entity is added with its parents, so that no hierarchy is incomplete. */
class Entities {
  readonly #byId = new Map<string, CedarEntity>()

  all(): CedarEntity[] {
    return [...this.#byId.values()]
  }

  addPrincipal(principal: PolicyPrincipal): EntityId {
    switch (principal?.type) {
      case 'agent':
        checkNames('principal', principal, ['type', 'id', 'resourceId'])
        return this.#agent('principal.id', principal.id, 'principal.resourceId', principal.resourceId)
      case 'user': {
        checkNames('principal', principal, ['type', 'id', 'resources', 'operator', 'scopes'])
        const { id, resources = [], operator = false, scopes } = principal
        if (typeof operator !== 'boolean') throw refused('principal.operator', 'true or false')
        const isAll = resources === '*'
        return this.#user('principal.id', id, {
          scopes: texts('principal.scopes', scopes),
          resources: texts('principal.resources', isAll ? [] : resources).map((one) => ({ __entity: { type: 'Policy::User', id: one } })),
          all_resources: isAll,
          operator,
        })
      }
      default:
        throw refused('principal.type', "'agent' or 'user'")
    }
  }

  addResource(resource: PolicyResource, principal: PolicyPrincipal): EntityId {
    switch (resource?.type) {
      case 'message_source':
        return this.#source(resource, principal)
      case 'thread':
        checkNames('resource', resource, ['type', 'id', 'resourceId'])
        return this.#add('Thread', 'resource.id', resource.id, {}, [this.#user('resource.resourceId', resource.resourceId)])
      case 'user':
        checkNames('resource', resource, ['type', 'id'])
        return this.#user('resource.id', resource.id)
      case 'tool': {
        checkNames('resource', resource, ['type', 'name', 'agentId', 'resourceId'])
        const agent = this.#agent('resource.agentId', resource.agentId, 'resource.resourceId', resource.resourceId)
        return this.#add('Tool', 'resource.name', resource.name, {}, [agent])
      }
      default:
        throw refused('resource.type', "'message_source', 'thread', 'user' or 'tool'")
    }
  }

  /** An unverified sender is no contact: anyone can claim to be one. */
  #source(source: MessageSourceResource, principal: PolicyPrincipal): EntityId {
    const { channel, verified, contactId } = source
    checkNames('resource', source, ['type', 'channel', 'verified', 'contactId'])
    if (typeof verified !== 'boolean') throw refused('resource.verified', 'true or false')
    if (principal.type !== 'agent') throw refused('principal.type', "'agent' for a message")
    const instance = this.#channel(channel)
    const sender = !verified || contactId === undefined
      ? undefined
      : this.#add('Contact', 'resource.contactId', contactId, {}, [this.#user('principal.resourceId', principal.resourceId)])
    const id = `${instance.id}#${sender ? sender.id : ''}`
    return this.#add('MessageSource', 'resource', id, { verified, ...(sender ? { sender: { __entity: sender } } : {}) }, [instance])
  }

  #channel(channel: MessageSourceResource['channel']): EntityId {
    checkNames('resource.channel', channel, ['kind', 'id'])
    checkName('resource.channel.kind', channel.kind)
    checkName('resource.channel.id', channel.id)
    if (channel.kind.includes('/')) throw refused('resource.channel.kind', "a text without '/'")
    const kind = this.#add('Channel', 'resource.channel.kind', channel.kind, {}, [])
    return this.#add('Channel', 'resource.channel.id', `${channel.kind}/${channel.id}`, {}, [kind])
  }

  #agent(field: string, id: unknown, ownerField: string, owner: unknown): EntityId {
    return this.#add('Agent', field, id, {}, [this.#user(ownerField, owner)])
  }

  /** The same user may be the principal and the owner of the resource: the attributes of the principal stay. */
  #user(field: string, id: unknown, attrs: Record<string, unknown> = ownerAttributes): EntityId {
    return this.#add('User', field, id, attrs, [])
  }

  #add(type: string, field: string, id: unknown, attrs: Record<string, unknown>, parents: EntityId[]): EntityId {
    checkName(field, id)
    const uid = { type: `Policy::${type}`, id }
    const key = `${type} ${id}`
    const known = this.#byId.get(key)
    if (!known) this.#byId.set(key, { uid, attrs, parents })
    // One agent may be the principal, for one resource, and have the tool, for another.
    else known.parents.push(...parents.filter((parent) => !known.parents.some((one) => one.id === parent.id)))
    return uid
  }
}

const ownerAttributes = { scopes: [], resources: [], all_resources: false, operator: false }

/** A set of texts, sorted and without repetitions, so that equal sets are equal requests. */
function texts(field: string, values: readonly string[] = []): string[] {
  const given: unknown = values
  const isSet = Array.isArray(given) && given.length <= maxElements && given.every((one) => typeof one === 'string' && one.isWellFormed())
  if (!isSet) throw refused(field, `a list of at most ${maxElements} texts`)
  return values.length < 2 ? [...values] : [...new Set(values)].toSorted()
}

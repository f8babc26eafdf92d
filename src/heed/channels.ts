import { checkName, checkNames, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { Channel } from '../channel/channel.ts'
import type { ReplyQuery, ReplyRecord, ReplyScope } from '../store/contract/replies.ts'
import { replyStates } from '../watch/replies/machine.ts'
import type { Replies } from '../watch/replies/replies.ts'
import type { Heed } from './heed.ts'

/**
 * The channels of a Heed: their messages are stored in its storage, beside the watches of the agents that use that storage, with the
 * replies of channels in mode `message`.
 */
export class Channels {
  readonly #heed: Heed
  readonly #channels = new Map<string, Channel>()

  /** @internal */
  constructor(heed: Heed, channels: readonly Channel[]) {
    this.#heed = heed
    for (const channel of channels) this.#add(channel)
  }

  #add(channel: Channel): void {
    const details = { option: 'channels' }
    if (typeof (channel as Partial<Channel> | undefined)?.connect !== 'function')
      throw new HeedError('invalid_argument', 'channels must be channels: new Channel({ … }).', { details })
    if (this.#channels.has(channel.id))
      throw new HeedError('invalid_argument', `Two channels have the id '${channel.id}'. Give one of them another.`, { details })
    const heed = this.#heed
    const agentId = this.#agentOf(channel)
    this.#channels.set(channel.id, channel)
    heed.sites.of().watches.addChannel(channel)
    channel.connect({
      now: () => heed.clock.now(),
      ...(agentId === undefined ? {} : { agentId }),
      async store(inbounds) {
        await heed.sites.of().watches.receive(inbounds)
      },
    })
  }

  /** The agent that answers runs where the messages are stored: one transaction can't cover two storages. */
  #agentOf(channel: Channel): string | undefined {
    if (channel.mode === 'signal') return undefined
    const details = { option: 'channels' }
    const { agentId = '' } = channel
    const agent = this.#heed.findAgent(agentId)
    if (!agent) {
      const why = `The channel '${channel.id}' names the agent '${agentId}', which is not in 'agents' of this Heed. Add it there.`
      throw new HeedError('invalid_argument', why, { details })
    }
    if (agent.storageDependsOnRequest || agent.site() !== this.#heed.sites.of()) {
      const why = `The agent '${agentId}' of the channel '${channel.id}' has a storage of its own. Use one whose threads are in the Heed's.`
      throw new HeedError('invalid_argument', why, { details })
    }
    return agent.id
  }

  /** @internal How many channels there are. */
  get size(): number {
    return this.#channels.size
  }

  get(id: string): Channel | undefined {
    return this.#channels.get(id)
  }

  /** The replies of channels in mode `message`, in the order of their messages, up to `limit`; 100 by default. */
  async listReplies(query: ReplyListQuery = {}): Promise<{ replies: ReplyRecord[]; more: boolean }> {
    checkNames('listReplies()', query, ['resourceId', 'channelId', 'threadId', 'state', 'limit', 'after'])
    for (const field of ['resourceId', 'channelId', 'threadId'] as const) if (query[field] !== undefined) checkName(field, query[field])
    if (query.state !== undefined && !replyStates.includes(query.state)) throw refused('state', `one of ${replyStates.join(', ')}`)
    if (query.limit !== undefined) checkWhole('limit', query.limit, 1)
    if (query.after !== undefined) checkWhole('after', query.after)
    return this.#replies.list(query)
  }

  /** A reply; null when it doesn't exist. */
  async getReply(scope: ReplyScope): Promise<ReplyRecord | null> {
    return this.#replies.get(checkScope('getReply()', scope))
  }

  /** Sends a dead reply again, with the same text and id. One that is not dead is returned as it is. */
  async retryReply(scope: ReplyScope): Promise<ReplyRecord> {
    const reply = await this.#replies.retry(checkScope('retryReply()', scope))
    if (!reply) throw new HeedError('not_found', `There is no reply '${scope.id}'.`, { details: { id: scope.id } })
    return reply
  }

  get #replies(): Replies {
    return this.#heed.sites.of().watches.replies
  }
}

/** Which replies `listReplies()` returns. */
export type ReplyListQuery = Partial<ReplyQuery>

function checkScope(method: string, scope: ReplyScope): ReplyScope {
  checkNames(method, scope, ['id', 'resourceId'])
  checkName('id', scope.id)
  if (scope.resourceId !== undefined) checkName('resourceId', scope.resourceId)
  return scope
}

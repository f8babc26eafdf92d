import { createHash } from 'node:crypto'
import { checkNames, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isName } from '../base/json.ts'
import { checkModel, type ModelConfig } from '../run/model/model.ts'
import type { NewInbound } from '../store/contract/watches.ts'
import type { ChannelAdapter, ChannelAnswer, ChannelDelivery, ChannelReply, ChannelRequest, SentReply } from './adapter.ts'
import { Contacts } from './contacts.ts'
import { checkMessage, type InboundMessage } from './message.ts'

/** The options of a `Channel`. */
export interface ChannelOptions {
  /** Identifies the channel among those of its kind, in policies, and in the URL of its webhook. */
  id: string
  /** Verifies and maps the requests of the provider. */
  adapter: ChannelAdapter
  /** Defaults to the kind of the adapter. */
  kind?: string
  /**
   * Whose messages these are: watches of other resources never see them. A function returns undefined for a message that is to be dropped.
   */
  resourceId: string | ((message: InboundMessage) => string | undefined)
  /** Who the verified senders are. */
  contacts?: Contacts
  /** The model that annotates each message with categories. Without one only the rules do. */
  annotator?: ModelConfig
  /**
   * `signal`, the default: messages are stored and annotated for watches, and never answered. `message`: an agent answers each of them
   * too; the adapter must be able to send.
   */
  mode?: 'signal' | 'message'
  /** The agent that answers, or its id. For mode `message`. Its threads are in the storage of the Heed. */
  agent?: string | { readonly id: string }
  /**
   * The thread on which the agent answers a message, for mode `message`. By default each conversation has one, or each sender where the
   * provider has no conversations; verified and unverified senders never share one.
   */
  threadId?: (message: InboundMessage, resourceId: string) => string
}

/** What a channel needs of the Heed that it is registered with. */
interface ChannelEnvironment {
  now(): number
  /** The agent that answers, in mode `message`. */
  agentId?: string
  /** Resolves when the messages are stored, as they are then. */
  store(inbounds: ReadonlyArray<Omit<NewInbound, 'id' | 'now'>>): Promise<void>
}

const idForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const kindForm = /^[a-z][a-z0-9_-]{0,31}$/

/** A source of inbound messages that agents wait for. Messages are stored and annotated; in mode `message`, an agent answers them. */
export class Channel {
  readonly id: string
  readonly kind: string
  readonly mode: 'signal' | 'message'
  readonly #options: ChannelOptions
  #environment: ChannelEnvironment | undefined

  constructor(options: ChannelOptions) {
    checkNames('new Channel()', options, ['id', 'adapter', 'kind', 'resourceId', 'contacts', 'annotator', 'mode', 'agent', 'threadId'])
    const { id, adapter, kind = adapter?.kind, resourceId, contacts, annotator } = options
    if (typeof id !== 'string' || !idForm.test(id))
      throw refused('id', 'up to 64 letters, digits, ".", "_" and "-", and begin with a letter or digit')
    if (typeof adapter?.receive !== 'function') throw refused('adapter', 'a channel adapter, such as twilioSms({ … })')
    if (typeof kind !== 'string' || !kindForm.test(kind)) throw refused('kind', 'up to 32 lower-case letters, digits, "_" and "-"')
    if (typeof resourceId !== 'function' && !isName(resourceId))
      throw refused('resourceId', 'the id of a resource, or a function that returns one')
    if (contacts !== undefined && !(contacts instanceof Contacts)) throw refused('contacts', 'Contacts: new Contacts([ … ])')
    if (annotator !== undefined) checkModel(annotator, `channel '${id}'`)
    checkMode(options)
    this.id = id
    this.kind = kind
    this.mode = options.mode ?? 'signal'
    this.#options = options
  }

  /** @internal */
  connect(environment: ChannelEnvironment): void {
    if (this.#environment) throw new HeedError('invalid_argument', `The channel '${this.id}' belongs to a Heed already. Create another.`)
    this.#environment = environment
    this.#options.contacts?.connect(() => environment.now())
    this.#options.adapter.connect?.((delivery) => this.#accept(delivery))
  }

  /** @internal */
  async annotator(): Promise<ModelConfig | undefined> {
    return this.#options.annotator
  }

  /** @internal The id of the agent that answers; undefined in mode `signal`. */
  get agentId(): string | undefined {
    const { agent } = this.#options
    return typeof agent === 'object' ? agent.id : agent
  }

  /** @internal */
  get answering(): Answering | undefined {
    const { adapter } = this.#options
    if (this.mode === 'signal') return undefined
    return { maxReplyLength: adapter.maxReplyLength, send: async (reply) => (await adapter.send?.(reply)) ?? {} }
  }

  /** Verifies a request of the provider and stores its messages. Resolves when they are stored: only then the provider may forget them. */
  async receive(request: ChannelRequest): Promise<ChannelAnswer> {
    const { answer = { status: 200 }, ...delivery } = this.#options.adapter.receive(request, this.#connected().now())
    await this.#accept(delivery)
    return answer
  }

  /** An adapter of the program's own may return anything: what is no message is rejected by name, and nothing of the delivery is stored. */
  async #accept({ messages }: Pick<ChannelDelivery, 'messages'>): Promise<void> {
    if (!Array.isArray(messages)) throw refused('messages', `a list, as the adapter of the channel '${this.id}' returns it`)
    const checked = messages.map((message, index) => checkMessage(`messages[${index}]`, message))
    const inbounds = checked.flatMap((message) => this.#inboundOf(message) ?? [])
    if (inbounds.length > 0) await this.#connected().store(inbounds)
  }

  /** Messages that this channel sent itself are not stored: nothing waits for them. */
  #inboundOf(message: InboundMessage): Omit<NewInbound, 'id' | 'now'> | undefined {
    if (message.own) return undefined
    const { contacts, resourceId: of } = this.#options
    const resourceId = typeof of === 'function' ? of(message) : of
    if (resourceId === undefined) return undefined
    if (!isName(resourceId)) throw refused('resourceId', 'the id of a resource, or undefined')
    const { providerId, sender, conversation, text, subject, attachments, truncated } = message
    const contact = contacts?.resolve(this.kind, sender)
    const { agentId } = this.#connected()
    return {
      resourceId,
      channelId: this.id,
      kind: this.kind,
      providerId,
      sender,
      ...(contact ? { contactId: contact.contactId, contactSince: contact.since } : {}),
      ...(conversation === undefined ? {} : { conversation }),
      ...(agentId === undefined ? {} : { reply: this.#replyTo(message, agentId, resourceId) }),
      content: {
        text,
        ...(subject === undefined ? {} : { subject }),
        ...(attachments === undefined ? {} : { attachments }),
        ...(truncated ? { truncated: true as const } : {}),
      },
    }
  }

  #replyTo(message: InboundMessage, agentId: string, resourceId: string): NonNullable<NewInbound['reply']> {
    return { agentId, threadId: this.#threadOf(message, resourceId), ...(message.automatic ? { automatic: true } : {}) }
  }

  /** A stable id for the conversation or the sender. Texts of the provider are hashed: they have any length and any characters. */
  #threadOf(message: InboundMessage, resourceId: string): string {
    const { threadId: of } = this.#options
    const { conversation, sender: { address, verified } } = message
    if (of) {
      const threadId: unknown = of(message, resourceId)
      // The threads of agents that other agents call begin so.
      if (!isName(threadId) || threadId.startsWith('child:')) throw refused('threadId', 'a function that returns the id of a thread')
      return threadId
    }
    const place = conversation === undefined ? ['sender', address] : ['conversation', conversation]
    const hash = createHash('sha256').update(JSON.stringify([resourceId, verified, ...place])).digest('hex')
    return `channel:${this.id}:${hash.slice(0, 32)}`
  }

  #connected(): ChannelEnvironment {
    if (this.#environment) return this.#environment
    const why = `The channel '${this.id}' belongs to no Heed yet. Register it: new Heed({ channels: [channel] }).`
    throw new HeedError('invalid_argument', why)
  }
}

interface Answering {
  maxReplyLength: number | undefined
  send(reply: ChannelReply): Promise<SentReply>
}

function checkMode({ id, adapter, mode = 'signal', agent, threadId }: ChannelOptions): void {
  if (mode !== 'signal' && mode !== 'message') throw refused('mode', "'signal' or 'message'")
  if (threadId !== undefined && typeof threadId !== 'function') throw refused('threadId', 'a function that returns the id of a thread')
  if (mode === 'signal') {
    const given = agent === undefined ? (threadId === undefined ? undefined : 'threadId') : 'agent'
    if (given === undefined) return
    const why = `The channel '${id}' has '${given}', which only mode 'message' uses. Set mode, or leave it out.`
    throw new HeedError('unsupported_option', why, { details: { option: given } })
  }
  const isAgent = typeof agent === 'object' ? agent !== null : isName(agent)
  if (!isAgent) throw refused('agent', "the agent that answers, or its id, in mode 'message'")
  if (typeof adapter.send !== 'function') {
    const why = `The adapter of the channel '${id}' can not send, which mode 'message' needs. Give it the credentials for replies`
    throw new HeedError('invalid_argument', `${why}, or use mode 'signal'.`, { details: { option: 'mode' } })
  }
}

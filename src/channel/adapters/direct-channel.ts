import { checkName, checkNames } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { ChannelAdapter, ChannelDelivery, ChannelReply, SentReply } from '../adapter.ts'
import { checkMessage, type InboundMessage } from '../message.ts'

/** The options of `directChannel()`. */
export interface DirectChannelOptions {
  /** Defaults to `direct`. */
  kind?: string
  /** Receives replies. Without it, the channel has none. */
  send?: (reply: ChannelReply) => Promise<SentReply>
}

/** A channel whose messages come from the program itself. */
export interface DirectChannel extends ChannelAdapter {
  /** Receives a message: resolves when the channel has stored it. `sender.verified` is as the caller sets it. */
  deliver(...messages: InboundMessage[]): Promise<void>
}

/** For programs that have messages already, and for tests. It takes no requests. */
export function directChannel(options: DirectChannelOptions = {}): DirectChannel {
  return new Direct(options)
}

class Direct implements DirectChannel {
  readonly kind: string
  readonly send?: (reply: ChannelReply) => Promise<SentReply>
  #accept: ((delivery: ChannelDelivery) => Promise<void>) | undefined

  constructor(options: DirectChannelOptions) {
    checkNames('directChannel', options, ['kind', 'send'])
    const { kind = 'direct', send } = options
    checkName('directChannel.kind', kind)
    this.kind = kind
    if (send) this.send = send
  }

  receive(): never {
    throw new HeedError('unauthorized', 'This channel takes no requests: the program calls deliver().')
  }

  connect(accept: (delivery: ChannelDelivery) => Promise<void>): void {
    if (this.#accept) throw new HeedError('invalid_argument', 'This adapter belongs to a channel already. Make one for each channel.')
    this.#accept = accept
  }

  async deliver(...messages: InboundMessage[]): Promise<void> {
    if (!this.#accept) throw new HeedError('invalid_argument', 'This adapter belongs to no channel yet. Configure a channel with it first.')
    await this.#accept({ messages: messages.map((message) => checkMessage('message', message)) })
  }
}

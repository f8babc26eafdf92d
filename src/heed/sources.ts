import { HeedError } from '../base/errors.ts'
import type { Heed } from './heed.ts'
import type { NotificationInput } from '../inbox/input.ts'
import type { SignalProvider } from '../sources/source.ts'
import { subscriptionStoreOf } from '../store/contract/storage.ts'
import type { SubscriptionRecord, SubscriptionStore } from '../store/contract/subscriptions.ts'

/** The sources of a Heed: the store of their subscriptions, and the delivery of their notifications to threads. */
export class Sources {
  readonly #heed: Heed
  readonly #sources = new Map<string, SignalProvider>()
  #stopped = false

  constructor(heed: Heed, sources: readonly SignalProvider[]) {
    this.#heed = heed
    for (const source of sources) {
      this.#check(source)
      this.#sources.set(source.id, source)
      source.connect({
        clock: heed.clock,
        logger: heed.logger,
        store: () => this.#store(),
        admit: (target) => this.#admit(target),
        notify: (subscription, notification) => this.#notify(subscription, notification),
      })
    }
  }

  #check(source: Partial<SignalProvider> | undefined): void {
    const details = { option: 'sources' }
    if (typeof source?.connect !== 'function') {
      throw new HeedError('invalid_argument', 'sources must be objects of a class that extends SignalProvider.', { details })
    }
    const id = String(source.id)
    if (!/^[\w.-]{1,64}$/.test(id)) {
      const why = `The id '${id}' of a source is in its webhook's address: use letters, digits, '.', '-' and '_'.`
      throw new HeedError('invalid_argument', why, { details })
    }
    if (!this.#sources.has(id)) return
    throw new HeedError('invalid_argument', `Two sources have the id '${id}'. Give one of them another.`, { details })
  }

  get(id: string): SignalProvider | undefined {
    return this.#sources.get(id)
  }

  /** Has no effect after `stop()`. */
  start(): void {
    if (this.#stopped) return
    for (const source of this.#sources.values()) source.start()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all([...this.#sources.values()].map((source) => source.stop()))
  }

  async #store(): Promise<SubscriptionStore> {
    const store = await subscriptionStoreOf(await this.#heed.sites.of().storage())
    if (!store) {
      throw new HeedError('unsupported_option', "The storage has no domain 'subscriptions'. Use one that has it, such as a LibSQLStore.")
    }
    await store.open()
    return store
  }

  async #admit({ agentId, threadId, resourceId }: { agentId: string; threadId: string; resourceId: string }): Promise<void> {
    const runtime = (await this.#heed.getAgentById(agentId).resolveStorage()).threads()
    await runtime.open()
    await runtime.store.getThread({ threadId, resourceId })
  }

  /**
   * Resolves when the notification would survive a power cut: the sender of the event may then forget it. An agent that is not in this
   * process may be in another: its notification is stored for that one.
   */
  async #notify({ agentId, threadId, resourceId }: SubscriptionRecord, notification: NotificationInput): Promise<void> {
    const agent = Object.values(this.#heed.listAgents()).find(({ id }) => id === agentId)
    if (agent) {
      const { stored } = await agent.sendNotificationSignal(notification, { threadId, resourceId })
      return stored
    }
    await this.#heed.sites.of().inbox.ingestForPeer(notification, { agentId, threadId, resourceId })
  }
}

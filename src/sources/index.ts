/** Sources of notifications. */
export { SignalProvider, type SubscribeTarget } from './source.ts'
export type { PollAnswer, PollContext, SourceEvent, ToldOfEvent, WebhookAnswer, WebhookRequest } from './event.ts'
export { WebhookSignals, type WebhookEvent, type WebhookSignalsOptions } from './webhook.ts'
export { GitHubSignals, type GitHubSignalsOptions } from './github.ts'
export type { SubscriptionRecord } from '../store/contract/subscriptions.ts'

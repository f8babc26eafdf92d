/** Where things happen that threads want to hear of. */
export { SignalProvider, type SourceEvent, type SubscribeTarget, type WebhookAnswer, type WebhookRequest } from './source.ts'
export { WebhookSignals, type WebhookEvent, type WebhookSignalsOptions } from './webhook.ts'
export { GitHubSignals, type GitHubSignalsOptions } from './github.ts'

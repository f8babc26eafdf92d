/** Models, servers, clocks and conformance suites for tests of code that uses Heed. Needs no test runner and no network. */
export { scriptedModel } from './scripted-model.ts'
export type { ScriptedCalls, ScriptedModel, ScriptedModelOptions, ScriptedModelV2, ScriptedModelV3 } from './scripted-model.ts'
export type {
  Script, ScriptedAnswer, ScriptedCall, ScriptedFailure, ScriptedFile, ScriptedSource, ScriptedStep, ScriptedToolCall, ScriptedUsage,
} from './script.ts'
export type { Pace } from './playback.ts'

export { providerServer, type ProviderServer, type ProviderServerOptions, type RecordedRequest } from './providers/provider-server.ts'
export type { WireProtocolName } from './providers/wire-protocol.ts'

export { virtualClock, type VirtualClock } from './virtual-clock.ts'

// What every store promises, as cases for any test runner: run each case under its `name`.
export { storeConformance, type StoreCase, type StoreHarness } from '../store/conformance/index.ts'
export {
  notificationConformance, type NotificationCase, type NotificationHarness,
} from '../store/conformance/notifications/notifications.ts'
export { scheduleConformance, type ScheduleCase, type ScheduleHarness } from '../store/conformance/schedules.ts'
export { subscriptionConformance, type SubscriptionCase, type SubscriptionHarness } from '../store/conformance/subscriptions.ts'
// The same where two connections write at once: for harnesses with `another`.
export { storeWriterConformance } from '../store/conformance/writers/index.ts'
export type { StoreWriterCase, TwoWriters } from '../store/conformance/case.ts'
export { notificationWriterConformance, type NotificationWriterCase } from '../store/conformance/writers/notifications.ts'
export { scheduleWriterConformance, type ScheduleWriterCase } from '../store/conformance/writers/schedules.ts'
export { subscriptionWriterConformance, type SubscriptionWriterCase } from '../store/conformance/writers/subscriptions.ts'
export { sourceConformance, type SourceCase, type SourceHarness } from './source-conformance.ts'
export { busConformance, type BusCase, type BusHarness } from '../bus/conformance.ts'

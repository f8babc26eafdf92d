/** Models, servers, clocks and conformance suites for tests of code that uses Heed. Needs no test runner and no network. */
export { scriptedModel } from './scripted-model.ts'
export type { ScriptedCalls, ScriptedModel, ScriptedModelOptions, ScriptedModelV2, ScriptedModelV3 } from './scripted-model.ts'
export type {
  Script, ScriptedAnswer, ScriptedCall, ScriptedFailure, ScriptedFile, ScriptedSource, ScriptedStep, ScriptedToolCall, ScriptedUsage,
} from './script.ts'
export type { Pace } from './playback.ts'

export { providerServer, type ProviderServer, type ProviderServerOptions, type RecordedRequest } from './providers/provider-server.ts'
export type { RealtimeItem, RecordedRealtimeSession } from './providers/openai-realtime.ts'
export type { ServerSpeech } from './providers/openai-audio.ts'
export type { WireProtocolName } from './providers/wire-protocol.ts'
export { spelledSound, spelledText } from './spelled-sound.ts'

export { virtualClock, type VirtualClock } from './virtual-clock.ts'

// What every store promises, as cases for any test runner: run each case under its `name`. Writer cases need a harness with `another`.
export { storeConformance, storeWriterConformance, type StoreCase, type StoreHarness } from '../store/conformance/index.ts'
export { notificationConformance } from '../store/conformance/notifications/notifications.ts'
export type { NotificationCase, NotificationHarness } from '../store/conformance/notifications/fixture.ts'
export {
  scheduleConformance, scheduleWriterConformance, type ScheduleCase, type ScheduleHarness, type ScheduleWriterCase,
} from '../store/conformance/schedules.ts'
export {
  subscriptionConformance, subscriptionWriterConformance, type SubscriptionCase, type SubscriptionHarness, type SubscriptionWriterCase,
} from '../store/conformance/subscriptions.ts'
export {
  watchConformance, type WatchCase, type WatchHarness,
} from '../store/conformance/watches.ts'
export { watchWriterConformance, type WatchWriterCase } from '../store/conformance/writers/watches.ts'
export { notificationWriterConformance, type NotificationWriterCase } from '../store/conformance/writers/notifications.ts'
export type { StoreWriterCase, TwoWriters } from '../store/conformance/fixture.ts'
export { sourceConformance, type SourceCase, type SourceHarness } from './source-conformance.ts'
export { vectorConformance, type VectorCase, type VectorHarness } from './vector-conformance.ts'
export { workflowConformance, type ConformingWorkflows, type WorkflowCase, type WorkflowHarness } from './workflow-conformance.ts'
export { busConformance, type BusCase, type BusHarness } from '../bus/conformance.ts'

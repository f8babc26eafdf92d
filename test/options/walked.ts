import * as channelsEntry from '../../src/channel/index.ts'
import { AgentClient } from '../../src/client/agent.ts'
import * as aiSdkEntry from '../../src/client/ai-sdk/index.ts'
import * as clientEntry from '../../src/client/index.ts'
import { MemoryClient } from '../../src/client/memory.ts'
import { NotificationsClient } from '../../src/client/notifications.ts'
import * as reactEntry from '../../src/client/react/index.ts'
import { SchedulesClient } from '../../src/client/schedules.ts'
import { ThreadListSubscription } from '../../src/client/thread-list.ts'
import { ThreadSubscription } from '../../src/client/thread-subscription.ts'
import { RemoteVoiceSession } from '../../src/client/voice/remote-session.ts'
import { VoiceClient } from '../../src/client/voice/voice-client.ts'
import { Channels } from '../../src/heed/channels.ts'
import * as serverEntry from '../../src/http/server.ts'
import * as heedEntry from '../../src/index.ts'
import { ResourceMemory } from '../../src/memory/resource-memory.ts'
import * as policyEntry from '../../src/policy/index.ts'
import * as processorsEntry from '../../src/processors/index.ts'
import * as duckdbEntry from '../../src/recall/stores/duckdb.ts'
import * as lancedbEntry from '../../src/recall/stores/lancedb.ts'
import * as scorersEntry from '../../src/scorers/index.ts'
import * as sourcesEntry from '../../src/sources/index.ts'
import * as pgEntry from '../../src/store/postgres/index.ts'
import * as libsqlEntry from '../../src/store/sqlite/index.ts'
import * as testingEntry from '../../src/testing/index.ts'
import * as voiceEntry from '../../src/voice/index.ts'
import * as workflowsEntry from '../../src/workflow/index.ts'
import { calls } from './calls.ts'
import { declaredOptions, type Entry } from './declared.ts'
import { Recorder } from './recorder.ts'

export const declared = declaredOptions(calls)
export const recorder = new Recorder(declared)

/** An entry of the package, with the calls that are walked recorded. */
function recorded<T extends object>(entry: Entry, names: T): T {
  const changed = { ...names } as Record<string, unknown>
  for (const call of calls[entry] ?? []) {
    const name = call.replace('new ', '')
    const given = changed[name]
    if (typeof given === 'function') changed[name] = isClass(given) ? recorder.class(name, given as never) : recorder.function(name, given)
  }
  return changed as T
}

const isClass = (given: object) => Object.getOwnPropertyDescriptor(given, 'prototype')?.writable === false

// Classes and objects that other calls return are recorded by their methods.
const returned = { AgentClient, MemoryClient, NotificationsClient, SchedulesClient, ThreadListSubscription, ThreadSubscription, Channels, RemoteVoiceSession, ResourceMemory, VoiceClient }
for (const [name, given] of Object.entries(returned)) recorder.class(name, given as never)
recorder.getter('AgentSchedules', heedEntry.Agent.prototype, 'schedules')

export const heed = recorded('heed', heedEntry)
export const libsql = recorded('libsql', libsqlEntry)
export const pg = recorded('pg', pgEntry)
export const duckdb = recorded('duckdb', duckdbEntry)
export const lancedb = recorded('lancedb', lancedbEntry)
export const server = recorded('server', serverEntry)
export const sources = recorded('sources', sourcesEntry)
export const client = recorded('client', clientEntry)
export const react = recorded('react', reactEntry)
export const aiSdk = recorded('ai-sdk', aiSdkEntry)
export const policy = recorded('policy', policyEntry)
export const channels = recorded('channels', channelsEntry)
export const processors = recorded('processors', processorsEntry)
export const scorers = recorded('scorers', scorersEntry)
export const workflow = recorded('workflows', workflowsEntry)
export const voice = recorded('voice', voiceEntry)
export const testing = recorded('testing', testingEntry)

import { checkNames, checkObject, checkText, refused } from '../../base/arguments.ts'
import { describe, HeedError } from '../../base/errors.ts'
import { isName, type JSONObject, type JSONValue } from '../../base/json.ts'
import { checkTiming } from '../../schedule/timing.ts'
import type { Signal } from '../../signals/signal.ts'
import { workflowRunner } from '../../store/contract/thread-row.ts'
import type { ScheduleRecord, ScheduleStatus } from '../../store/contract/schedules.ts'
import { toJSONValue } from '../json-value.ts'

/** When runs of a workflow start by themselves, and with what. */
export interface WorkflowSchedule<Input = unknown, State = unknown> {
  /** Names it among the schedules of the workflow. Needed where there are several; `default` where it is left out. */
  id?: string
  /** Five or six fields, or a name such as `@daily`. */
  cron: string
  /** The time zone of the expression, such as `Europe/Zurich`. Defaults to that of the process. */
  timezone?: string
  inputData?: Input
  initialState?: State
  requestContext?: Readonly<Record<string, unknown>>
  /** For the application: lists of schedules have it. */
  metadata?: Readonly<Record<string, unknown>>
  /** The owner of the runs. */
  resourceId?: string
}

/** A schedule of a workflow as a list has it. */
export interface WorkflowScheduleInfo {
  id: string
  cron: string
  timezone?: string
  inputData?: JSONValue
  metadata?: JSONObject
  resourceId?: string
  status: ScheduleStatus
  nextAt?: Date
  /** The last run that it started, and the time that the run is named by. */
  lastRunId?: string
  lastAt?: Date
  lastError?: string
}

/** What a scheduled run begins with, as its schedule has stored it. */
export interface ScheduledStart {
  inputData?: JSONValue
  initialState?: JSONObject
  requestContext?: JSONObject
}

/** A schedule of the code, as lists of workflows have it. */
export type DescribedSchedule = Pick<WorkflowScheduleInfo, 'id' | 'cron' | 'timezone'>

/** A schedule that was checked. */
export interface ReadySchedule {
  readonly id: string
  readonly cron: string
  readonly timezone: string | undefined
  readonly resourceId: string | undefined
  readonly start: ScheduledStart
  readonly metadata: JSONObject | undefined
}

/** What the ids of runs that schedules start begin with. */
export const scheduledPrefix = 'schedule:'
const fields = ['id', 'cron', 'timezone', 'inputData', 'initialState', 'requestContext', 'metadata', 'resourceId']
const defaultId = 'default'
/** An id in the store has at most 200 characters. */
const mostOfIds = 190

/** Checks the schedules of a workflow. What they start runs with is checked by the schemas of the workflow when a Heed starts. */
export function readySchedules(workflowId: string, given: unknown): ReadySchedule[] {
  if (given === undefined) return []
  const list: unknown[] = Array.isArray(given) ? given : [given]
  const ready = list.map((schedule) => readySchedule(workflowId, schedule, list.length > 1))
  const twice = ready.find(({ id }, index) => ready.findIndex((other) => other.id === id) !== index)
  if (twice) throw invalid(workflowId, `has two schedules '${twice.id}'. Give one of them another id.`)
  return ready
}

function readySchedule(workflowId: string, given: unknown, isOneOfMany: boolean): ReadySchedule {
  const who = `schedule of workflow '${workflowId}'`
  checkNames(who, given, fields)
  const { id, cron, timezone, inputData, initialState, requestContext, metadata, resourceId } = given as Partial<WorkflowSchedule>
  if (id === undefined && isOneOfMany) throw invalid(workflowId, 'has several schedules: each needs an id.')
  if (id !== undefined && (!isName(id) || id.length + workflowId.length > mostOfIds))
    throw refused(`id of ${who}`, `a text of at most ${mostOfIds} characters, with the id of the workflow`)
  if (resourceId !== undefined) checkText(`resourceId of ${who}`, resourceId)
  for (const [name, value] of Object.entries({ initialState, requestContext, metadata }))
    if (value !== undefined) checkObject(`${name} of ${who}`, value)
  if (typeof cron !== 'string') throw invalid(workflowId, "has a schedule without a cron: schedule: { cron: '0 8 * * *' }.")
  try {
    checkTiming({ cron, timeZone: timezone }, 0)
  } catch (error) {
    throw invalid(workflowId, `has a schedule that can't be: ${describe(error)}`)
  }
  const json = <Value extends JSONValue>(name: string, value: unknown) => toJSONValue(value, `${name} of ${who}`) as Value | undefined
  const start = {
    inputData: json<JSONValue>('inputData', inputData), initialState: json<JSONObject>('initialState', initialState),
    requestContext: json<JSONObject>('requestContext', requestContext),
  }
  return Object.freeze({
    id: id ?? defaultId, cron, timezone, resourceId, metadata: json<JSONObject>('metadata', metadata),
    start: Object.fromEntries(Object.entries(start).filter(([, value]) => value !== undefined)),
  })
}

function invalid(workflowId: string, why: string): HeedError {
  return new HeedError('invalid_workflow', `Workflow '${workflowId}' ${why}`, { details: { workflowId } })
}

/** The id of a schedule among those of the store. */
export function storedScheduleId(workflowId: string, id: string): string {
  return `${workflowRunner(workflowId)}:${id}`
}

/** The run that an occurrence starts. Its id is the same in every process, so that it starts once. */
export function scheduledRunId(record: ScheduleRecord, at: number): string {
  return `${scheduledPrefix}${ownId(record)}:${new Date(at).toISOString()}`
}

/** The id that the code has. In the store it may have a suffix. */
function ownId({ signal }: ScheduleRecord): string {
  return String(signal.contents)
}

/** What the store has of a schedule besides its times. */
export function scheduleSignal({ id, start, metadata }: ReadySchedule, createdAt: string): Signal {
  const about = { start: start as JSONObject, ...(metadata ? { metadata } : {}) }
  return { id: `start:${id}`, type: 'reactive', tagName: 'workflow-start', contents: id, metadata: about, createdAt, transient: true }
}

/** What an occurrence starts a run with; undefined for a schedule that does not start runs. */
export function scheduledStart({ threadId, agentId, signal }: ScheduleRecord): ScheduledStart | undefined {
  return threadId === agentId ? (signal.metadata as { start?: ScheduledStart } | undefined)?.start ?? {} : undefined
}

export function scheduleInfo(record: ScheduleRecord): WorkflowScheduleInfo {
  const { timing, signal, agentId, resourceId, status, nextAt, lastAt, lastSignalId, lastError } = record
  const { cron = '', timeZone } = timing as { cron?: string; timeZone?: string }
  const { start: { inputData } = {}, metadata } = (signal.metadata ?? {}) as { start?: ScheduledStart; metadata?: JSONObject }
  const info: Partial<WorkflowScheduleInfo> & Record<string, unknown> = {
    timezone: timeZone, inputData, metadata, resourceId: resourceId === agentId ? undefined : resourceId, nextAt, lastAt,
    lastRunId: lastSignalId, lastError,
  }
  const known = Object.fromEntries(Object.entries(info).filter(([, value]) => value !== undefined))
  return { id: ownId(record), cron, status, ...known }
}

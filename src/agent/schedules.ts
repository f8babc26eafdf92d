import { checkNames, checkObject, checkName, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { ScheduleOnce, ScheduleOptions } from '../schedule/schedules.ts'
import type { MessageInput, Signal, SignalInput } from '../signals/signal.ts'
import type { ScheduleQuery, ScheduleRecord, ScheduleScope, ScheduleStatus } from '../store/contract/schedules.ts'
import type { Askable } from './askable.ts'
import { hasCallerId, messageToSignal, toSignal } from './sends.ts'

export type { ScheduleOnce, ScheduleRecord }

/** A message of a user, or context that a system produced, and when it is sent. */
export type ScheduleInput = ScheduleOptions & ({ message: MessageInput; signal?: never } | { signal: SignalInput; message?: never })

/** A schedule of an agent. With a `resourceId`, schedules of other resources are not found. */
export type AgentScheduleScope = Omit<ScheduleScope, 'agentId'>

/** The schedules of one agent. */
export interface AgentSchedules {
  /**
   * Validates the input and stores it. Replaces the agent's schedule of the same id, unless it is the same schedule: that one stays
   * unchanged. Rejects the id of another agent's with `id_taken`.
   */
  create(input: ScheduleInput): Promise<ScheduleRecord>
  /** The same, unless a schedule of this id is stored: that one stays unchanged. */
  createOnce(input: ScheduleInput & { id: string }): Promise<ScheduleOnce>
  get(scope: AgentScheduleScope): Promise<ScheduleRecord | null>
  /** In order of id, up to `limit`; 100 by default. */
  list(query?: Partial<Omit<ScheduleQuery, 'agentId'>>): Promise<{ schedules: ScheduleRecord[]; more: boolean }>
  /** A schedule that is done stays done. */
  pause(scope: AgentScheduleScope): Promise<ScheduleRecord>
  /** Continues with the next occurrence from now. */
  resume(scope: AgentScheduleScope): Promise<ScheduleRecord>
  /** Signals that it sent before stay in their threads. */
  remove(scope: AgentScheduleScope): Promise<boolean>
}

const statuses: readonly string[] = ['active', 'paused', 'done'] satisfies ScheduleStatus[]

export function agentSchedules(agent: Askable): AgentSchedules {
  const signalIn = (input: ScheduleInput): { signal: Signal; options: ScheduleOptions } => {
    checkObject('schedule()', input)
    const { message, signal, ...options }: ScheduleInput = input
    if ((message === undefined) === (signal === undefined)) {
      throw new HeedError('invalid_argument', 'Invalid schedule: it needs a message or a signal, and not both.', {
        details: { field: 'message' },
      })
    }
    if (hasCallerId(message ?? signal)) {
      throw refused(message === undefined ? 'signal.id' : 'message.id', 'left out: each occurrence has an id of its own')
    }
    const site = agent.site()
    const sent = message === undefined ? toSignal(site, agent.signalTags, signal) : messageToSignal(site, agent.signalTags, message)
    return { signal: sent, options }
  }
  const scoped = (method: string, scope: AgentScheduleScope): ScheduleScope => {
    checkNames(`schedules.${method}()`, scope, ['id', 'resourceId'])
    checkName('id', scope.id)
    if (scope.resourceId !== undefined) checkName('resourceId', scope.resourceId)
    return { ...scope, agentId: agent.id }
  }
  const schedules = async () => (await agent.resolveStorage()).site().schedules
  return {
    async create(input) {
      const { signal, options } = signalIn(input)
      return (await schedules()).create(await agent.resolveStorage(), signal, options)
    },
    async createOnce(input) {
      const { signal, options } = signalIn(input)
      checkName('id', input.id)
      return (await schedules()).createOnce(await agent.resolveStorage(), signal, options)
    },
    get: async (scope) => (await schedules()).get(scoped('get', scope)),
    list: async (query = {}) => {
      checkNames('schedules.list()', query, ['resourceId', 'threadId', 'status', 'after', 'limit'])
      for (const field of ['resourceId', 'threadId', 'after'] as const) if (query[field] !== undefined) checkName(field, query[field])
      if (query.status !== undefined && !statuses.includes(query.status)) throw refused('status', `one of ${statuses.join(', ')}`)
      if (query.limit !== undefined) checkWhole('limit', query.limit, 1)
      return (await schedules()).list({ ...query, agentId: agent.id })
    },
    pause: async (scope) => (await schedules()).pause(scoped('pause', scope)),
    resume: async (scope) => (await schedules()).resume(scoped('resume', scope)),
    remove: async (scope) => (await schedules()).remove(scoped('remove', scope)),
  }
}

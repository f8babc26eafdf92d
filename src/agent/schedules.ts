import { checkNames, checkObject, checkName, checkWhole, refused } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import type { ScheduleOnce, ScheduleOptions } from '../schedule/schedules.ts'
import type { MessageInput, Signal, SignalInput } from '../signals/signal.ts'
import type { ScheduleQuery, ScheduleRecord, ScheduleScope, ScheduleStatus } from '../store/contract/schedules.ts'
import type { Askable } from './askable.ts'
import { sentMessage, sentSignal } from './sent-signals.ts'

export type { ScheduleOnce, ScheduleRecord }

/** What is sent when: a user's words, or context that a system produced. */
export type ScheduleInput = ScheduleOptions & ({ message: MessageInput; signal?: never } | { signal: SignalInput; message?: never })

/** Which schedule of an agent. One with a `resourceId` sees nothing of another resource. */
export type AgentScheduleScope = Omit<ScheduleScope, 'agentId'>

/** The schedules of an agent, and no other's. */
export interface AgentSchedules {
  /** Everything that is wrong with it is refused now. The id of one that is there replaces it; that of another agent's is refused with `id_taken`. */
  create(input: ScheduleInput): Promise<ScheduleRecord>
  /** The same, unless one of its id is there: that stays as it is, whatever it sends. */
  createOnce(input: ScheduleInput & { id: string }): Promise<ScheduleOnce>
  get(scope: AgentScheduleScope): Promise<ScheduleRecord | null>
  /** By id, up to 100 unless told. */
  list(query?: Partial<Omit<ScheduleQuery, 'agentId'>>): Promise<{ schedules: ScheduleRecord[]; more: boolean }>
  /** One that is done stays so. */
  pause(scope: AgentScheduleScope): Promise<ScheduleRecord>
  /** Goes on with the next occurrence from now. */
  resume(scope: AgentScheduleScope): Promise<ScheduleRecord>
  /** What it had put into a thread by then stays there; nothing more of it comes. */
  remove(scope: AgentScheduleScope): Promise<boolean>
}

const statuses: readonly string[] = ['active', 'paused', 'done'] satisfies ScheduleStatus[]

export function agentSchedules(agent: Askable): AgentSchedules {
  const signalIn = (input: ScheduleInput): { signal: Signal; options: ScheduleOptions } => {
    checkObject('schedule()', input)
    const { message, signal, ...options }: ScheduleInput = input
    if ((message === undefined) === (signal === undefined)) {
      throw new HeedError('invalid_argument', 'Invalid schedule: it needs a message or a signal, and not both.', { details: { field: 'message' } })
    }
    const site = agent.site()
    const sent = message === undefined ? sentSignal(site, agent.signalTags, signal) : sentMessage(site, agent.signalTags, message)
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

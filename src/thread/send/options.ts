import { HeedError } from '../../base/errors.ts'
import { isName, isObject } from '../../base/json.ts'
import { activeBehaviors, idleBehaviors, type ActiveBehavior, type IdleBehavior } from '../../machine.ts'
import type { AgentExecutionOptions, WokenRunOptions } from '../../run/options.ts'
import { readField } from '../../signals/input-fields.ts'
import { normalizeAttributes } from '../../signals/normalize.ts'
import type { SignalAttributes } from '../../signals/signal.ts'
import type { Branch } from '../../store/contract/threads.ts'
import type { Target } from '../runtime/runtime.ts'

/** What happens to the signal on an active thread and on an idle one. */
export interface SendBranches {
  ifActive?: { behavior?: ActiveBehavior; attributes?: SignalAttributes }
  ifIdle?: { behavior?: IdleBehavior; attributes?: SignalAttributes; streamOptions?: WokenRunOptions }
}

/** A thread and its resource. With `runId`, only that run of it. */
export interface ThreadSendOptions extends SendBranches {
  resourceId: string
  threadId: string
  runId?: string
}

/** An active run; it determines the thread. */
export interface RunSendOptions extends SendBranches {
  runId: string
  resourceId?: string
  threadId?: string
}

/** The target of a send, and what happens to the signal there. */
export type SendOptions = ThreadSendOptions | RunSendOptions

/** The validated options of a send: the branches with their defaults, the rest as passed. */
export interface CheckedSend {
  options: SendOptions
  ifActive: Branch<ActiveBehavior>
  ifIdle: Branch<IdleBehavior>
}

const sendKeys: readonly string[] = ['runId', 'resourceId', 'threadId', 'ifActive', 'ifIdle']
const activeKeys: readonly string[] = ['behavior', 'attributes']
const idleKeys: readonly string[] = [...activeKeys, 'streamOptions']

/**
 * Rejects a send without a target, and options with unknown names or values. The options of the run (`streamOptions`) are checked by the
 * agent.
 */
export function checkSendOptions(options: SendOptions): CheckedSend {
  const { runId, resourceId, threadId, ifActive, ifIdle } = (options as Partial<SendOptions> | undefined) ?? {}
  if (runId !== undefined && !isName(runId)) throw badTarget('runId')
  if (resourceId !== undefined && !isName(resourceId)) throw badTarget('resourceId')
  if (threadId !== undefined && !isName(threadId)) throw badTarget('threadId')
  checkKeys(options ?? {}, '', sendKeys)
  if (runId === undefined && threadId === undefined) throw badTarget('threadId')
  if (runId === undefined && resourceId === undefined) throw badTarget('resourceId')
  const checked: CheckedSend = {
    options,
    ifActive: branch('ifActive', ifActive, 'deliver', activeBehaviors, activeKeys),
    ifIdle: branch('ifIdle', ifIdle, 'wake', idleBehaviors, idleKeys),
  }
  if (ifIdle) checkIdleApplies(ifIdle, runId, checked.ifIdle.behavior)
  return checked
}

/**
 * Rejects options of `ifIdle` that cannot take effect: those of a send to an active run, and those of a run that does not start. The
 * request context stays, since the storage may depend on it; so do title and metadata of a thread that stores the signal.
 */
function checkIdleApplies(ifIdle: NonNullable<SendBranches['ifIdle']>, runId: string | undefined, behavior: IdleBehavior): void {
  if (runId !== undefined) {
    const why = 'a send with a runId reaches an active run only'
    for (const name of ['behavior', 'attributes'] as const) if (ifIdle[name] !== undefined) throw withoutEffect(`ifIdle.${name}`, why)
    checkNoRun(ifIdle.streamOptions, why, [])
  } else if (behavior !== 'wake') {
    const why = `with the behavior '${behavior}' no run starts`
    checkNoRun(ifIdle.streamOptions, why, behavior === 'persist' ? ['thread', 'resource'] : ['resource'])
  }
}

function checkNoRun(options: WokenRunOptions | undefined, why: string, ofMemory: readonly string[]): void {
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === undefined || name === 'requestContext') continue
    if (name !== 'memory') throw withoutEffect(`ifIdle.streamOptions.${name}`, why)
    for (const [field, given] of Object.entries(value as object)) {
      const isTarget = field === 'thread' && typeof given === 'string'
      if (given === undefined || isTarget || ofMemory.includes(field)) continue
      throw withoutEffect(`ifIdle.streamOptions.memory.${field}`, why)
    }
  }
}

function withoutEffect(field: string, why: string): HeedError {
  return new HeedError('invalid_argument', `${field} has no effect: ${why}. Leave it out.`, { details: { field } })
}

/** A queued message waits for the end of the active run, and can't interrupt it. */
export function checkQueued({ ifActive }: CheckedSend): void {
  const why = 'a queued message waits for the end of the active run'
  if (ifActive.behavior === 'interrupt') throw withoutEffect('ifActive.behavior', why)
}

/** Whether the signal may go into history without a run. */
export function persists({ ifActive, ifIdle }: Pick<SendOptions, 'ifActive' | 'ifIdle'>): boolean {
  return ifActive?.behavior === 'persist' || ifIdle?.behavior === 'persist'
}

/** Whether a signal of this branch starts or enters a run. Otherwise the receipt has the signal's id in place of a run id. */
export function hasRun({ behavior }: { behavior?: ActiveBehavior | IdleBehavior } = {}): boolean {
  return behavior !== 'persist' && behavior !== 'discard'
}

/** A transient signal is for one run and never in history: where it would be persisted it is discarded. */
export function discardInsteadOfPersist({ options, ifActive, ifIdle }: CheckedSend): CheckedSend {
  return {
    options,
    ifActive: ifActive.behavior === 'persist' ? { behavior: 'discard' } : ifActive,
    ifIdle: ifIdle.behavior === 'persist' ? { behavior: 'discard' } : ifIdle,
  }
}

/** A misspelt option would otherwise be ignored. */
function checkKeys(given: object, under: string, names: readonly string[]): void {
  for (const key of Object.keys(given)) {
    if (names.includes(key) || given[key as keyof typeof given] === undefined) continue
    const all = names.map((name) => under + name).join(', ')
    throw new HeedError('invalid_argument', `A send has no option '${under}${key}'. Known: ${all}.`, { details: { field: under + key } })
  }
}

function badTarget(field: string): HeedError {
  return new HeedError(
    'invalid_argument',
    'A send needs its target: resourceId and threadId, or the runId of an active run. ' +
      `'${field}' is missing or is not a valid string (well-formed Unicode, no NUL).`,
    { details: { field } },
  )
}

function branch<Behavior extends string>(
  field: string,
  given: { behavior?: Behavior; attributes?: SignalAttributes } = {},
  fallback: NoInfer<Behavior>,
  behaviors: readonly string[],
  names: readonly string[],
): Branch<Behavior> {
  if (!isObject(given)) {
    throw new HeedError('invalid_argument', `${field} must be an object, such as { behavior: '${fallback}' }.`, { details: { field } })
  }
  checkKeys(given, `${field}.`, names)
  const behavior = given.behavior ?? fallback
  if (!behaviors.includes(behavior)) {
    throw new HeedError('invalid_argument', `${field}.behavior '${String(behavior)}' is not known. Use one of: ${behaviors.join(', ')}.`, {
      details: { field: `${field}.behavior` },
    })
  }
  const path = `${field}.attributes`
  if (given.attributes !== undefined && behavior === 'discard') throw withoutEffect(path, 'what is discarded is not stored')
  const attributes = given.attributes && readField(path, () => normalizeAttributes(given.attributes, path))
  return { behavior, ...(attributes ? { attributes } : {}) }
}

/** The options of the run that a send starts, on the thread of the send. */
export function runOptions(given: WokenRunOptions | undefined, { threadId, resourceId }: Target): AgentExecutionOptions | undefined {
  if (!given?.memory) return given as AgentExecutionOptions | undefined
  const { thread, ...memory } = given.memory
  const named = typeof thread === 'object' ? { ...thread, id: threadId } : threadId
  return { ...given, memory: { ...memory, thread: named, resource: resourceId } }
}

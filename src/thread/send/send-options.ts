import { isName } from '../../base/arguments.ts'
import { HeedError } from '../../base/errors.ts'
import type { ActiveBehavior, IdleBehavior } from '../../machine.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import { normaliseAttributes } from '../../signals/attributes.ts'
import { readField } from '../../signals/json-copy.ts'
import type { SignalAttributes } from '../../signals/signal.ts'
import type { Branch } from '../../store/contract/threads.ts'

/** Where a signal goes, and what happens to it there. */
export interface SendOptions {
  /** The active run; its thread is found by it. */
  runId?: string
  resourceId?: string
  threadId?: string
  ifActive?: { behavior?: ActiveBehavior; attributes?: SignalAttributes }
  ifIdle?: { behavior?: IdleBehavior; attributes?: SignalAttributes; streamOptions?: AgentExecutionOptions }
}

/** The options of a send after they were checked: the branches with their defaults, the rest as it was given. */
export interface CheckedSend {
  options: SendOptions
  ifActive: Branch<ActiveBehavior>
  ifIdle: Branch<IdleBehavior>
}

const activeBehaviors: readonly string[] = ['deliver', 'interrupt', 'persist', 'discard']
const idleBehaviors: readonly string[] = ['wake', 'persist', 'discard']
const known: readonly string[] = ['runId', 'resourceId', 'threadId', 'ifActive', 'ifIdle']
const ofActive: readonly string[] = ['behavior', 'attributes']
const ofIdle: readonly string[] = [...ofActive, 'streamOptions']

/**
 * Rejects a send without a target, and options with unknown names or values. The options of the run (`streamOptions`) are checked by the
 * agent.
 */
export function checkSendOptions(options: SendOptions): CheckedSend {
  const { runId, resourceId, threadId, ifActive, ifIdle } = (options as SendOptions | undefined) ?? {}
  if (runId !== undefined && !isName(runId)) throw badTarget('runId')
  if (resourceId !== undefined && !isName(resourceId)) throw badTarget('resourceId')
  if (threadId !== undefined && !isName(threadId)) throw badTarget('threadId')
  checkKeys(options ?? {}, '', known)
  if (runId === undefined && threadId === undefined) throw badTarget('threadId')
  if (runId === undefined && resourceId === undefined) throw badTarget('resourceId')
  return {
    options,
    ifActive: branch('ifActive', ifActive ?? {}, 'deliver', activeBehaviors, ofActive),
    ifIdle: branch('ifIdle', ifIdle ?? {}, 'wake', idleBehaviors, ofIdle),
  }
}

/** Whether the signal may go into history without a run. */
export function persists({ ifActive, ifIdle }: Pick<SendOptions, 'ifActive' | 'ifIdle'>): boolean {
  return ifActive?.behavior === 'persist' || ifIdle?.behavior === 'persist'
}

/** Whether a signal of this branch starts a run or enters one. Otherwise it has an id of its own only. */
export function hasRun({ behavior }: { behavior?: ActiveBehavior | IdleBehavior } = {}): boolean {
  return behavior !== 'persist' && behavior !== 'discard'
}

/** A transient signal is for one run and never in history: where it would be persisted it is discarded. */
export function neverPersisted({ options, ifActive, ifIdle }: CheckedSend): CheckedSend {
  return {
    options,
    ifActive: ifActive.behavior === 'persist' ? { behavior: 'discard' } : ifActive,
    ifIdle: ifIdle.behavior === 'persist' ? { behavior: 'discard' } : ifIdle,
  }
}

/** A misspelt option would otherwise count as one that is not given. */
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
      `'${field}' is missing, or no text of whole characters without NUL.`,
    { details: { field } },
  )
}

function branch<Behavior extends string>(
  field: string,
  given: { behavior?: Behavior; attributes?: SignalAttributes },
  fallback: NoInfer<Behavior>,
  behaviors: readonly string[],
  names: readonly string[],
): Branch<Behavior> {
  if (typeof given !== 'object') {
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
  const attributes = given.attributes && readField(path, () => normaliseAttributes(given.attributes, path))
  return { behavior, ...(attributes ? { attributes } : {}) }
}

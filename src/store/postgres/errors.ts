import { HeedError, isHeedError } from '../../base/errors.ts'
import { SpeculationFailed } from '../sql/replay/replay.ts'

/** The code of a server's error: five characters. Errors of sockets have other codes. */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error) || typeof error.code !== 'string') return undefined
  return /^[0-9A-Z]{5}$/.test(error.code) && 'severity' in error ? error.code : undefined
}

/** The server ended the session. */
const endings = /^(?:08|57P0|25P03|25P04)/
/** Its resources, its files, or itself: such an error may end the whole server, and its severity is then PANIC. */
const severe = /^(?:53|58|XX)/

/** The server accepts no writes; the second: it is a replica, which tells no position of a log of its own. */
const writesNothing: ReadonlySet<string> = new Set(['25006', '55000'])

/** The connection is gone, or there is none that writes: the same may succeed on another. */
export function isLost(error: unknown): boolean {
  if (isHeedError(error)) return false
  const state = sqlState(error)
  if (state === undefined) return !(error instanceof TypeError || error instanceof SpeculationFailed)
  return endings.test(state) || writesNothing.has(state) || ['0A000', '53300'].includes(state) || endsServer(error, state)
}

/** Whether the server did not say what became of a transaction. Other errors say that nothing of it was stored. */
export function isUnanswered(error: unknown): boolean {
  if (isHeedError(error) || error instanceof SpeculationFailed) return false
  const state = sqlState(error)
  return state === undefined || endings.test(state) || endsServer(error, state)
}

/** Where the server speaks another language, ERROR has another name: then it is asked, which does no harm. */
function endsServer(error: unknown, state: string): boolean {
  return severe.test(state) && state !== '53300' && (error as { severity?: unknown }).severity !== 'ERROR'
}

/** Nothing was changed, and the same transaction may succeed at once. */
export function isConflict(error: unknown): boolean {
  return ['40P01', '40001', '23505', '55P03'].includes(sqlState(error) ?? '')
}

/** An asserted statement changed another number of rows, or inserted one that another transaction has inserted. */
export function isRefutedGuess(error: unknown): boolean {
  return ['22012', '23505'].includes(sqlState(error) ?? '')
}

/** A statement failed for its values: perhaps for a guessed one. */
export function isOfValues(error: unknown): boolean {
  return /^2[23]/.test(sqlState(error) ?? '')
}

/** A pooler gives this client a connection on which others prepared statements, or on which it has not. */
export function isOfPreparedNames(error: unknown): boolean {
  return ['26000', '42P05'].includes(sqlState(error) ?? '')
}

/** The error for callers. Nothing of it names the password. */
export function postgresFailure(error: unknown, name: string): HeedError {
  if (isHeedError(error)) return error
  const state = sqlState(error)
  const why = error instanceof Error ? error.message : String(error)
  const details = state === undefined ? undefined : { sqlState: state }
  const failure = (code: ConstructorParameters<typeof HeedError>[0], message: string, retryable = false) =>
    new HeedError(code, `The database ${name} ${message}`, { cause: error, retryable, ...(details && { details }) })
  if (state === undefined) return failure('store_failed', `can't be reached: ${why}. Check its address, and that the server runs.`, true)
  if (state.startsWith('28')) return failure('store_failed', `rejected the credentials: ${why}. Check the user and the password.`)
  if (state === '3D000') return failure('store_failed', `does not exist: ${why}. Create it, or name another.`)
  if (state === '42501') return failure('store_failed', `refused for want of a right: ${why}. Grant it to the role of Heed.`)
  if (writesNothing.has(state)) {
    return failure('store_readonly', `is read-only: ${why}. Name the primary server; a replica can't store threads.`)
  }
  if (state === '53100') {
    return failure('store_full', `has no space left: ${why}. Make room; what was refused may then be sent again.`, true)
  }
  if (state === '53300') {
    return failure('store_failed', `has no free connection: ${why}. Raise its max_connections, or lower \`max\`.`, true)
  }
  if (state === '54000') return failure('invalid_argument', `can't index a value that long: ${why}. Use a shorter id or key.`)
  if (/^(?:08|57P0|53)/.test(state)) return failure('store_failed', `is not available: ${why}.`, true)
  if (['40P01', '40001', '55P03', '57014', '25P03', '25P04'].includes(state)) {
    return failure('store_failed', `is too busy: ${why}. Try again.`, true)
  }
  return failure('store_failed', `refused: ${why}.`)
}

/** The error for a call whose transaction may have been committed. */
export function unknownOutcome(error: unknown, name: string): HeedError {
  const why = error instanceof Error ? error.message : String(error)
  const problem = `Whether the database ${name} stored this is not known: the connection was lost during the commit, and then: ${why}.`
  const message = `${problem} Call again with the same ids, which stores it once, or read it.`
  return new HeedError('store_unknown', message, { cause: error, retryable: true })
}

import { HeedError, isHeedError } from '../../base/errors.ts'

/** The code of a server's error: five characters. Errors of sockets have other codes. */
export function sqlState(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error) || typeof error.code !== 'string') return undefined
  return /^[0-9A-Z]{5}$/.test(error.code) && 'severity' in error ? error.code : undefined
}

/** The connection is gone, or leads to a server that does not write: a statement that was sent may have been executed. */
export function isLost(error: unknown): boolean {
  const state = sqlState(error)
  if (isHeedError(error)) return false
  return state === undefined ? !(error instanceof TypeError) : /^(?:08|57P0)/.test(state) || state === '25006' || state === '0A000'
}

/** Nothing was changed, and the same transaction may succeed at once. */
export function isConflict(error: unknown): boolean {
  return ['40P01', '40001', '23505', '55P03'].includes(sqlState(error) ?? '')
}

/** An asserted statement changed another number of rows. */
export function isRefutedGuess(error: unknown): boolean {
  return sqlState(error) === '22012'
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
  if (state === '25006') {
    return failure('store_readonly', `is read-only: ${why}. Name the primary server; a replica can't store threads.`)
  }
  if (state === '53100') {
    return failure('store_full', `has no space left: ${why}. Make room; what was refused may then be sent again.`, true)
  }
  if (state === '54000') return failure('invalid_argument', `can't index a value that long: ${why}. Use a shorter id or key.`)
  if (/^(?:08|57P0|53)/.test(state)) return failure('store_failed', `is not available: ${why}.`, true)
  if (['40P01', '40001', '55P03', '57014', '25P03', '25P04'].includes(state)) {
    return failure('store_failed', `is too busy: ${why}. Try again.`, true)
  }
  return failure('store_failed', `refused: ${why}.`)
}

import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { HeedError, isHeedError } from '../../base/errors.ts'

const GENERIC = 1
const BUSY = 5
const READONLY = 8
const CORRUPT = 11
const FULL = 13
const CANT_OPEN = 14
const NOT_A_DATABASE = 26

/** SQLite's primary result code, if it threw the error. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('errcode' in error) || typeof error.errcode !== 'number') return undefined
  return error.errcode & 0xff
}

/** SQLite failed, whatever the statement was. */
export function isDatabaseError(error: unknown): boolean {
  return resultCode(error) !== undefined
}

/** Another connection has the lock that this one needs, and will release it. */
export function isBusy(error: unknown): boolean {
  return resultCode(error) === BUSY
}

/** The error for callers. Errors of Heed are returned as they are. */
export function storeFailure(error: unknown, name: string): HeedError {
  if (isHeedError(error)) return error
  const code = resultCode(error)
  const why = error instanceof Error ? error.message : String(error)
  if (code === CORRUPT || code === NOT_A_DATABASE || (code === GENERIC && /^no such (?:table|column|index)/.test(why))) {
    return new HeedError(
      'store_corrupt',
      `The database ${name} is damaged or is none: ${why}. Restore it from a backup, or name another file.`,
      { cause: error },
    )
  }
  if (code === BUSY) {
    return new HeedError('store_failed', `The database ${name} is held by another process. Try again when that is done.`, {
      cause: error,
      retryable: true,
    })
  }
  if (code === FULL) {
    return new HeedError(
      'store_full',
      `There is no space left for the database ${name}. Make room; what was refused may then be sent again.`,
      { cause: error, retryable: true },
    )
  }
  if (code === READONLY || (code === CANT_OPEN && isReadOnly(name))) {
    return new HeedError(
      'store_readonly',
      `The database ${name} can't be written: ${why}. Check the permissions of the file and its folder, and its mount.`,
      { cause: error },
    )
  }
  return new HeedError('store_failed', `The database ${name} refused: ${why}. Check its disk and its permissions.`, { cause: error })
}

/** Where the folder is not writable, SQLite cannot create its log, and reports only that it cannot open a file. */
function isReadOnly(path: string): boolean {
  try {
    accessSync(dirname(path), constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

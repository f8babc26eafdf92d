import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** The one name of a file, however it was written and whether or not it is there yet. */
export function realFile(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const folder = dirname(resolve(path))
    const target = linkTarget(path)
    if (target !== undefined) return realFile(resolve(folder, target))
    return folder === resolve(path) ? folder : join(realFile(folder), basename(path))
  }
}

/** Where a link points whose file is still to be made. */
function linkTarget(path: string): string | undefined {
  try {
    const target = readlinkSync(path)
    // A link to itself leads nowhere.
    return resolve(dirname(path), target) === resolve(path) ? undefined : target
  } catch {
    return undefined
  }
}

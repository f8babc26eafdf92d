import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** The canonical path of a file: one for all of its names, and also if the file doesn't exist yet. */
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

/** The target of a link whose file doesn't exist yet. */
function linkTarget(path: string): string | undefined {
  try {
    const target = readlinkSync(path)
    // A link to itself has no target.
    return resolve(dirname(path), target) === resolve(path) ? undefined : target
  } catch {
    return undefined
  }
}

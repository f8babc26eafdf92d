import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** How much an installation is. */
export function installed(project) {
  const folder = join(project, 'node_modules')
  const lock = JSON.parse(readFileSync(join(folder, '.package-lock.json'), 'utf8'))
  let bytes = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size
  }
  return { packages: Object.keys(lock.packages).length, megabytes: bytes / 1_000_000 }
}

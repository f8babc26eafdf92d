import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Puts a package of `root` into the project, as if its owner had installed it. */
export function lend(root: string, project: string, name: string): void {
  const [from, to] = [join(root, 'node_modules', name), join(project, 'node_modules', name)]
  if (!existsSync(from) || existsSync(to)) return
  mkdirSync(dirname(to), { recursive: true })
  symlinkSync(from, to)
}

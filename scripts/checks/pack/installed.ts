import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { PackLimits } from './pack.ts'
import type { CheckResult } from '../report.ts'

interface InstalledLock {
  packages: Record<string, { hasInstallScript?: boolean }>
}

/** What an install of the tarball left in `project`: how much it is, and that nothing of it has to be compiled. */
export function installedProblems(project: string, limits: PackLimits): CheckResult {
  const folder = join(project, 'node_modules')
  const lock = JSON.parse(readFileSync(join(folder, '.package-lock.json'), 'utf8')) as InstalledLock
  const packages = Object.entries(lock.packages)
  const problems: string[] = []
  let bytes = 0

  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    bytes += statSync(path).size
    if (entry.name.endsWith('.node') || entry.name === 'binding.gyp') {
      problems.push(`${path.slice(folder.length + 1)} is native code: make its package an optional peer.`)
    }
  }
  for (const [path, { hasInstallScript }] of packages) {
    if (hasInstallScript) problems.push(`${path} runs a script when it is installed: make it an optional peer.`)
  }

  const megabytes = bytes / 1_000_000
  if (packages.length > limits.packages) {
    const names = packages.map(([path]) => path.replace(/^.*node_modules\//, '')).join(', ')
    problems.push(`${packages.length} packages are installed, more than ${limits.packages}: ${names}. Do without one.`)
  }
  if (megabytes > limits.megabytes) {
    problems.push(`${megabytes.toFixed(1)} MB are installed, more than ${limits.megabytes}: do without what is large.`)
  }
  const summary = `${packages.length} of at most ${limits.packages} packages, ${megabytes.toFixed(1)} of at most ${limits.megabytes} MB`
  return { summary, problems }
}

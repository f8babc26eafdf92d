import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { CheckResult } from './report.ts'

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Manifest = Record<string, Record<string, Json> | undefined>

/** What is installed here is what was tried. Peers are the user's, and may be ranges. */
const exactFields = ['dependencies', 'devDependencies', 'optionalDependencies', 'overrides'] as const
const lockedFields = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'] as const
const exactVersion = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/

/** The lock file installs from whatever registry a user has, and nothing in the manifest floats. */
export function checkLockfile(root: string): CheckResult {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
  const problems = exactFields.flatMap((field) => floating(manifest[field] ?? {}, field))
  const path = join(root, 'package-lock.json')
  if (!existsSync(path)) {
    return { summary: 'no package-lock.json', problems: [...problems, 'package-lock.json is missing: run `npm install` and commit it.'] }
  }
  const lock = JSON.parse(readFileSync(path, 'utf8')) as { packages?: Record<string, Record<string, Json>> }
  const packages = Object.entries(lock.packages ?? {}).filter(([name]) => name !== '')
  for (const field of lockedFields) {
    if (!isDeepStrictEqual(manifest[field] ?? {}, lock.packages?.['']?.[field] ?? {})) {
      problems.push(`package-lock.json: its ${field} are not those of package.json: run \`npm install\` and commit both.`)
    }
  }
  for (const [name, entry] of packages) {
    problems.push(...addresses(entry, name))
    if (entry.integrity === undefined && entry.link !== true && entry.inBundle !== true) {
      problems.push(`package-lock.json: ${name} has no integrity, so \`npm ci\` can't verify it: install it again from a registry.`)
    }
  }
  return { summary: `${packages.length} locked packages`, problems }
}

function floating(versions: Record<string, Json>, field: string): string[] {
  return Object.entries(versions).flatMap(([name, version]) => {
    if (typeof version === 'object' && version !== null && !Array.isArray(version)) return floating(version, `${field}.${name}`)
    return typeof version === 'string' && exactVersion.test(version)
      ? []
      : [`package.json: ${field}.${name} is ${JSON.stringify(version)}: write the exact version that was tried.`]
  })
}

/** Where a package asks for money or explains a deprecation may be an address; where it comes from may not. */
function addresses(value: Json, at: string): string[] {
  if (typeof value === 'string') {
    const isAddress = /(https?|git(\+\w+)?|ssh):\/\//.test(value)
    return isAddress ? [`package-lock.json: ${at} is an address: a package comes from the registry, by version.`] : []
  }
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    if (key === 'funding' || key === 'deprecated' || key === 'license') return []
    if (key === 'resolved' && !('link' in value)) {
      const remedy = 'set omit-lockfile-registry-resolved=true in .npmrc and run `npm install`'
      return [`package-lock.json: ${at} has a resolved address: ${remedy}.`]
    }
    return addresses(inner, `${at}.${key}`)
  })
}

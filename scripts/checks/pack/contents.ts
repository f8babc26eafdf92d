import { matchesGlob } from 'node:path'

/** The fields of package.json that say what is published. */
export interface PackageManifest {
  name: string
  files?: string[]
  exports?: Record<string, ExportTarget>
}

type ExportTarget = string | null | { [condition: string]: ExportTarget }

/** The keys of "exports", in order. A pattern (`./icons/*`) can't be imported as it stands and is left out. */
export function subpaths(manifest: PackageManifest): string[] {
  return Object.keys(manifest.exports ?? {}).filter((key) => !key.includes('*'))
}

/** What is wrong with the list of files in the tarball. Sources are in it by accident, unless `files` names them by their ending. */
export function contentProblems(manifest: PackageManifest, packed: readonly string[]): string[] {
  const has = new Set(packed)
  const named = (manifest.files ?? []).filter((entry) => !entry.startsWith('!'))
  const meant = named.filter((entry) => /\.[cm]?tsx?$/.test(entry))
  const problems: string[] = []
  for (const path of packed.filter((one) => !isTemplate(one))) {
    if (/\.(test|test-d|bench)\./.test(path)) problems.push(`${path} is a test and in the tarball: exclude it in tsconfig.build.json.`)
    if (path.endsWith('.map')) problems.push(`${path} is in the tarball: sources are not published, so turn source maps off.`)
    const isSource = /(?<!\.d)\.[cm]?tsx?$/.test(path)
    if (isSource && !meant.some((entry) => matchesGlob(path, entry))) problems.push(`${path} is TypeScript source in the tarball: publish what is built from it.`)
  }
  for (const entry of named) {
    const folder = `${entry.replace(/\/$/, '')}/`
    if (!has.has(entry) && !packed.some((path) => path.startsWith(folder) || matchesGlob(path, entry))) {
      problems.push(`"files" names ${entry}, and nothing of it is in the tarball: add it, or take it out of "files".`)
    }
  }
  for (const [subpath, target] of Object.entries(manifest.exports ?? {})) {
    for (const path of targets(target)) {
      if (!path.includes('*') && !has.has(path.replace(/^\.\//, ''))) {
        problems.push(`"exports" sends ${subpath} to ${path}, which is not in the tarball: build it, or correct the path.`)
      }
    }
    const isCode = targets(target).some((path) => /\.[cm]?js$/.test(path))
    if (isCode && (typeof target !== 'object' || target === null || Object.keys(target)[0] !== 'types')) {
      problems.push(`"exports" gives ${subpath} no "types" as its first condition: a compiler takes the first that fits.`)
    }
  }
  return problems
}

/** Files of a project that a user gets, sources and tests included. */
function isTemplate(path: string): boolean {
  return path.startsWith('create-heed/templates/')
}

function targets(target: ExportTarget): string[] {
  if (typeof target === 'string') return [target]
  return target === null ? [] : Object.values(target).flatMap(targets)
}

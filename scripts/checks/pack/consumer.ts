import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CheckResult } from '../report.ts'

/** Names that a module exports at run time, by its specifier (`heed/testing`). */
type RuntimeExports = Record<string, string[]>

/** Imports every subpath in a process of its own, in the project that has the tarball installed. */
export function checkImports(project: string, name: string, subpaths: readonly string[]): CheckResult & { exports: RuntimeExports } {
  const exports: RuntimeExports = {}
  const problems: string[] = []
  for (const subpath of subpaths) {
    const specifier = name + subpath.slice(1)
    const options = subpath.endsWith('.json') ? `, { with: { type: 'json' } }` : ''
    const code = `console.log(JSON.stringify(Object.keys(await import('${specifier}'${options}))))`
    const run = ['--input-type=module', '--eval', code]
    const { status, stdout, stderr } = spawnSync(process.execPath, run, { cwd: project, encoding: 'utf8' })
    const names = status === 0 ? printedNames(stdout) : undefined
    if (names === undefined) {
      problems.push(`import '${specifier}' fails: ${firstError(stderr) ?? `it printed ${stdout.trim() || 'nothing'} as it loaded`}`)
    } else if (names.length === 0) {
      problems.push(`import '${specifier}' gives nothing: export something, or take the subpath out of "exports".`)
    } else if (!subpath.endsWith('.json')) {
      exports[specifier] = names
    }
  }
  const counts = Object.entries(exports).map(([specifier, names]) => `${specifier} ${names.length}`)
  return { summary: `exports: ${counts.join(', ') || 'none'}`, problems, exports }
}

/**
 * Compiles a file that imports every runtime export by name. Errors inside other packages' declarations are theirs: they are reported, and
 * then skipped as `skipLibCheck` does for users; errors in ours or in the imports fail.
 */
export function checkTypes(project: string, tsc: string, exports: RuntimeExports): CheckResult {
  const lines = Object.entries(exports).map(([specifier, names], module) => {
    const list = names.map((name, index) => `${name} as m${module}_${index}`)
    return `export { ${list.join(', ')} } from '${specifier}'`
  })
  writeFileSync(join(project, 'uses.ts'), `${lines.join('\n')}\n`)
  const strict = compile(project, tsc, false)
  const summary = `${Object.keys(exports).length} subpaths compile, strict, nodenext`
  if (strict.length === 0) return { summary: `${summary}, libraries checked too`, problems: [] }

  const foreign = strict.filter((line) => isForeign(line, exports))
  if (foreign.length < strict.length) {
    const own = strict.filter((line) => !isForeign(line, exports))
    return { summary, problems: own.slice(0, 20).map((line) => `the published types are wrong: ${line}`) }
  }
  const skipped = compile(project, tsc, true)
  const problems = skipped.slice(0, 20).map((line) => `the published types are wrong: ${line}`)
  return { summary: `${summary}, skipLibCheck because of ${foreign[0]?.replaceAll(project, '.')}`, problems }
}

function compile(project: string, tsc: string, skipLibCheck: boolean): string[] {
  const compilerOptions = {
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable', 'dom', 'dom.asynciterable'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    strict: true,
    noEmit: true,
    types: [],
    skipLibCheck,
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['uses.ts'] }))
  const { status, stdout, stderr } = spawnSync(tsc, ['-p', 'tsconfig.json', '--pretty', 'false'], { cwd: project, encoding: 'utf8' })
  if (status === 0) return []
  const errors = stdout.split('\n').filter((line) => /error TS\d+/.test(line))
  return errors.length > 0 ? errors : [stderr.trim() || stdout.trim() || `${tsc} could not be run`]
}

function isForeign(line: string, exports: RuntimeExports): boolean {
  const owner = /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(line)?.[1]
  return owner !== undefined && !Object.keys(exports).some((specifier) => specifier === owner || specifier.startsWith(`${owner}/`))
}

function printedNames(stdout: string): string[] | undefined {
  try {
    return JSON.parse(stdout) as string[]
  } catch {
    return undefined
  }
}

function firstError(stderr: string): string | undefined {
  return stderr.split('\n').find((line) => /Error\b/.test(line))?.trim()
}

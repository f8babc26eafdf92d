import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { madeFor } from '../arrows-table.ts'
import { checkImports, checkTypes } from './consumer.ts'
import { contentProblems, subpaths, type PackageManifest } from './contents.ts'
import { installedProblems } from './installed.ts'
import { moduleProblems } from './modules.ts'
import { checkPrograms, type Programs } from './programs.ts'
import { lend } from './project.ts'
import { report, type CheckResult } from '../report.ts'

export interface PackLimits {
  packages: number
  megabytes: number
}

interface PackOptions {
  /** The TypeScript compiler that a user of the package would run. */
  tsc: string
  limits: PackLimits
  /** Files below `dist` that pages load. */
  browserFiles?: readonly string[]
  /** Programs that use the installed package. */
  programs?: Programs
  /** Called with each check as it ends. */
  onCheck?: (name: string, result: CheckResult) => void
}

/**
 * Builds and packs the package at `root`, installs the tarball into an empty project and uses it there as a stranger would. A step that
 * another one needs ends the check when it fails.
 */
export function checkPack(root: string, { tsc, limits, browserFiles, programs, onCheck = report }: PackOptions): string[] {
  const work = mkdtempSync(join(tmpdir(), 'heed-pack-'))
  const problems: string[] = []
  const step = (name: string, result: CheckResult): boolean => {
    problems.push(...result.problems)
    onCheck(name, result)
    return result.problems.length === 0
  }
  try {
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as PackageManifest
    const built = attempt('npm run build', () => npm(root, 'run', 'build'))
    if (!step('build', built)) return problems

    let packed: PackedTarball | undefined
    const tarball = attempt('npm pack', () => {
      packed = parsePacked(npm(root, 'pack', '--json', '--ignore-scripts', '--pack-destination', work))
    })
    if (!packed) {
      step('tarball', tarball)
      return problems
    }
    const contents = `${packed.files.length} files, ${Math.ceil(packed.size / 1000)} kB`
    step('tarball', { summary: contents, problems: contentProblems(manifest, packed.files) })

    const project = join(work, 'project')
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }))
    const tgz = join(work, packed.filename)
    const installed = attempt('npm install of the tarball', () =>
      npm(project, 'install', tgz, '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'),
    )
    if (!step('install', installed)) return problems
    step('installed', installedProblems(project, limits))
    step('modules', moduleProblems(join(project, 'node_modules', manifest.name, 'dist'), browserFiles))

    // A program that imports an entry point for a peer has installed that peer; other programs need not.
    for (const peer of new Set(Object.values(madeFor))) for (const one of [peer, `@types/${peer}`]) lend(root, project, one)
    const imported = checkImports(project, manifest.name, subpaths(manifest))
    if (!step('imports', imported)) return problems
    step('types', checkTypes(project, tsc, imported.exports))
    if (programs) step('programs', checkPrograms(root, project, tsc, programs))
    return problems
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

interface PackedTarball {
  filename: string
  size: number
  files: string[]
}

/** npm 11 prints a list of packages; npm 12 an object by name. */
function parsePacked(json: string): PackedTarball {
  const parsed = JSON.parse(json) as Record<string, { filename: string; size: number; files: Array<{ path: string }> }>
  const packed = Object.values(parsed)[0]
  if (!packed) throw new Error('`npm pack` packed nothing')
  return { filename: packed.filename, size: packed.size, files: packed.files.map((file) => file.path) }
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', env: ownEnvironment(), stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Without what the npm that runs this check tells its scripts about the package it runs in. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const told = /^(npm_package_|npm_lifecycle_|npm_command$|npm_config_(local_prefix|global|prefix)$|INIT_CWD$)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !told.test(name)))
}

function attempt(what: string, run: () => unknown): CheckResult {
  try {
    run()
    return { summary: what, problems: [] }
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as { stdout?: string; stderr?: string; message: string }
    const said = `${stdout}${stderr}`.trim() || message
    return { summary: what, problems: [`${what} failed; run it by hand to see it whole:\n${said.split('\n').slice(-20).join('\n')}`] }
  }
}

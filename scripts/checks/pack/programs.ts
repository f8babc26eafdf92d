import { spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isBuiltin } from 'node:module'
import { lend } from './project.ts'
import type { CheckResult } from '../report.ts'

export interface Programs {
  /** Programs that use the package, as `node --test` runs them. Their own modules lie in folders beside them. */
  folder: string
  /** Pages that they bundle, copied to `pages` beside them. */
  pages?: string
  /** The browser that they open the pages with. */
  chromium?: string
}

/**
 * Compiles programs against the installed tarball, and runs them there. Packages that they import and peers of the package are lent from
 * `root`, where that has them.
 */
export function checkPrograms(root: string, project: string, tsc: string, { folder, pages, chromium }: Programs): CheckResult {
  const target = join(project, 'programs')
  cpSync(folder, target, { recursive: true })
  mkdirSync(join(target, 'pages'), { recursive: true })
  if (pages !== undefined) cpSync(pages, join(target, 'pages'), { recursive: true })
  const programs = globSync('*.ts', { cwd: target }).toSorted()
  if (programs.length === 0) return { summary: 'programs', problems: [`no program is in ${folder}.`] }
  const files = globSync('**/*.ts', { cwd: target })
  const packages = new Set(files.flatMap((file) => packagesOf(readFileSync(join(target, file), 'utf8'))))
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { peerDependencies?: Record<string, string> }
  const peers = Object.keys(manifest.peerDependencies ?? {})
  for (const name of [...peers, ...packages, ...[...packages].map(typesOf), '@types/node']) lend(root, project, name)

  const errors = compile(project, tsc)
  if (errors.length > 0) {
    const problems = errors.slice(0, 20).map((line) => `a program that uses the package does not compile: ${line}`)
    return { summary: 'programs', problems }
  }

  const flags = ['--test', '--test-reporter=tap', '--test-concurrency=2', '--test-timeout=60000']
  const args = [...flags, ...programs.map((file) => join('programs', file))]
  const env = { ...process.env, NODE_TEST_CONTEXT: undefined, HEED_CHROMIUM: chromium }
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8', env, maxBuffer: 1 << 28 })
  const problems = failures(stdout)
  if (status !== 0 && problems.length === 0) problems.push(`the programs ended with ${status}: ${stderr.trim() || stdout.slice(-2000)}`)
  const count = (word: string) => Number(new RegExp(`^# ${word} (\\d+)$`, 'm').exec(stdout)?.[1] ?? 0)
  const skipped = [...stdout.matchAll(/^\s*ok \d+ - (.*) # SKIP(.*)$/gm)].map(([, title, why]) => `; skipped: ${title} (${why?.trim()})`)
  return { summary: `${count('pass')} tests of ${programs.length} programs${skipped.join('')}`, problems }
}

function compile(project: string, tsc: string): string[] {
  const compilerOptions = {
    target: 'es2024', lib: ['es2024', 'esnext.disposable', 'dom', 'dom.asynciterable'], module: 'nodenext', moduleResolution: 'nodenext',
    strict: true, noEmit: true, types: ['node'], skipLibCheck: true, allowImportingTsExtensions: true, erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
  }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['programs'] }))
  const { status, stdout, stderr } = spawnSync(tsc, ['-p', 'tsconfig.json', '--pretty', 'false'], { cwd: project, encoding: 'utf8' })
  if (status === 0) return []
  return stdout.split('\n').filter((line) => /error TS\d+/.test(line)).concat(stderr.trim() === '' ? [] : [stderr.trim()])
}

function packagesOf(text: string): string[] {
  const specifiers = [...text.matchAll(/\bfrom '([^'.][^']*)'/g)].map(([, specifier = '']) => specifier)
  return specifiers.filter((specifier) => !isBuiltin(specifier)).map((specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier)
}

function typesOf(name: string): string {
  return `@types/${name.replace(/^@/, '').replace('/', '__')}`
}

/** Titles of failed tests with the first line of their error. A group fails with its tests, and is left out. */
function failures(tap: string): string[] {
  const found: string[] = []
  const lines = tap.split('\n')
  for (const [at, line] of lines.entries()) {
    const [, indent, title] = /^(\s*)not ok \d+ - (.*)$/.exec(line) ?? []
    if (title === undefined) continue
    const details = lines.slice(at + 1, lines.indexOf(`${indent}  ...`, at))
    const value = details.find((detail) => /^\s*error:/.test(detail))?.replace(/^\s*error:\s*/, '') ?? ''
    const error = /^[|>]-?$/.test(value) ? details[details.findIndex((detail) => /^\s*error:/.test(detail)) + 1]?.trim() : value
    if (!/subtests? failed/.test(error ?? '')) found.push(`${title}: ${error}`)
  }
  return found
}

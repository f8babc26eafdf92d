import { existsSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, matchesGlob, posix } from 'node:path'
import { arrows, emptyNames, madeFor, MAX_COLUMNS, MAX_FILES, MAX_LINES, mutual, pure, studioPackages, type ArrowTable } from './arrows-table.ts'
import { cycles } from './cycles.ts'
import { impurities } from './impurities.ts'
import { importsOf, type Import } from './imports.ts'
import type { CheckResult } from './report.ts'
import { isTest, sourceFiles, type SourceFile } from './source.ts'

const TABLE = 'scripts/checks/arrows-table.ts'

/** Holds `src` of the package at `root` to the arrows, the purity, the sizes and the names of the table. */
export function checkArrows(root: string, table: ArrowTable = arrows): CheckResult {
  const all = sourceFiles(root, 'src')
  const files = all.filter((file) => !isTest(file.path))
  const packages = declaredPackages(root)
  const problems = [
    ...all.flatMap(nameProblems),
    ...files.flatMap(lengthProblems),
    ...files.flatMap(columnProblems),
    ...crowdedFolders(files),
    ...unknownFolders(files, table),
    ...studioProblems(root),
  ]
  const loads = new Map<string, string[]>()
  const rooms = new Map<string, Set<string>>()
  let count = 0

  for (const file of files) {
    const isPure = pure.some((glob) => matchesGlob(below(file.path), glob))
    const targets: string[] = []
    for (const found of importsOf(file)) {
      count += 1
      const at = `${file.path}:${found.line}`
      if (isBuiltin(found.specifier)) {
        if (isPure) problems.push(`${at} imports ${found.specifier}: this file is pure. Take what it gives as a parameter.`)
      } else if (!found.specifier.startsWith('.')) {
        problems.push(...packageProblems(at, found, packages))
      } else {
        const target = posix.join(posix.dirname(file.path), found.specifier)
        if (found.kind !== 'type') targets.push(target)
        addArrow(rooms, lineFor(file.path, table), lineFor(target, table))
        problems.push(...arrowProblems(at, file.path, target, found.kind, table))
      }
    }
    loads.set(file.path, targets)
    if (isPure) for (const { line, what } of impurities(file)) problems.push(impurity(file, line, what))
  }

  for (const cycle of cycles(loads)) {
    problems.push(`${cycle.join(' -> ')} is a cycle. Move what they share to a file that both import, or import only its types.`)
  }
  // Between rooms types count too: rooms that need each other's types are one room, or miss a third that both stand on.
  for (const cycle of cycles(withoutMutual(rooms))) {
    problems.push(`${cycle.join(' -> ')} is a circle of rooms. Move what they share to a room that both import, or say in 'mutual' of ${TABLE} why not.`)
  }
  return { summary: `${files.length} files, ${count} imports`, problems }
}

/** The pages of Studio are a user of the package: they import its entries for browsers by name, and nothing else of `src`. */
function studioProblems(root: string): string[] {
  const files = sourceFiles(root, 'studio')
  const imports = files.flatMap((file) => importsOf(file).map(({ specifier, line }) => ({ file, specifier, line })))
  const foreign = imports.filter(({ file, specifier }) =>
    specifier.startsWith('.') ? !posix.join(posix.dirname(file.path), specifier).startsWith('studio/') : !studioPackages.includes(specifier))
  return [
    ...files.flatMap(nameProblems), ...files.flatMap(lengthProblems), ...files.flatMap(columnProblems), ...crowdedFolders(files),
    ...foreign.map(({ file, specifier, line }) =>
      `${file.path}:${line} imports ${specifier}: Studio may import its own files and ${studioPackages.join(', ')} (${TABLE}).`),
  ]
}

function arrowProblems(at: string, from: string, target: string, kind: Import['kind'], table: ArrowTable): string[] {
  if (!target.startsWith('src/')) return [`${at} imports ${target}, outside src: the published package has only what is in src.`]
  const own = lineFor(from, table)
  const other = lineFor(target, table)
  if (own === undefined || other === undefined || own === other) return []

  const rules = (table[own] ?? []).map(parseRule).filter((rule) => matchesGlob(below(target), rule.glob))
  if (rules.some((rule) => allows(rule.mark, kind))) return []
  const mark = rules[0]?.mark
  if (mark === 'type') return [`${at} loads ${target}: ${own} may only use its types. Write \`import type\`.`]
  if (mark === 'lazy') return [`${at} loads ${target} at once: ${own} may only \`await import()\` it, where it is used.`]
  return [
    `${at} imports ${target}: ${own} may not import ${other}. Pass it in, move what both need inward, ` +
      `or change the line of ${own} in ${TABLE}.`,
  ]
}

function parseRule(entry: string): { mark?: 'type' | 'lazy'; glob: string } {
  const [mark, glob] = entry.split(' ')
  return glob !== undefined && (mark === 'type' || mark === 'lazy') ? { mark, glob } : { glob: entry }
}

function allows(mark: 'type' | 'lazy' | undefined, kind: Import['kind']): boolean {
  return mark === undefined || kind === 'type' || kind === mark
}

function lineFor(path: string, table: ArrowTable): string | undefined {
  return Object.keys(table).find((glob) => matchesGlob(below(path), glob))
}

function below(path: string): string {
  return path.replace(/^src\//, '')
}

function unknownFolders(files: SourceFile[], table: ArrowTable): string[] {
  const unknown = files.filter((file) => lineFor(file.path, table) === undefined)
  const places = unknown.map((file) => file.path.split('/').slice(0, 2).join('/'))
  return [...new Set(places)].map((place) => `${place} is not in the table: add a line to ${TABLE} that says what it may import.`)
}

function addArrow(rooms: Map<string, Set<string>>, from: string | undefined, to: string | undefined): void {
  if (from === undefined || to === undefined || from === to) return
  const targets = rooms.get(from)
  if (targets) targets.add(to)
  else rooms.set(from, new Set([to]))
}

/** The arrows between rooms, without those that the table excuses. */
function withoutMutual(rooms: ReadonlyMap<string, ReadonlySet<string>>): Map<string, string[]> {
  const excused = new Set(Object.keys(mutual))
  return new Map([...rooms].map(([from, targets]) => [from, [...targets].filter((to) => !excused.has(`${from} -> ${to}`))]))
}

function lengthProblems(file: SourceFile): string[] {
  const lines = file.text.replace(/\n$/, '').split('\n').length
  return lines > MAX_LINES ? [`${file.path} has ${lines} lines, more than ${MAX_LINES}: give its second idea a file of its own.`] : []
}

function columnProblems(file: SourceFile): string[] {
  return file.text.split('\n').flatMap((line, index) =>
    line.length > MAX_COLUMNS ? [`${file.path}:${index + 1} has ${line.length} columns, more than ${MAX_COLUMNS}: break the line.`] : [],
  )
}

function crowdedFolders(files: SourceFile[]): string[] {
  const counts = new Map<string, number>()
  for (const { path } of files) counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1)
  return [...counts].flatMap(([folder, count]) =>
    count > MAX_FILES ? [`${folder} has ${count} files, more than ${MAX_FILES}: give its second concept a folder of its own.`] : [],
  )
}

function nameProblems(file: SourceFile): string[] {
  const words = below(file.path).replace(/\.tsx?$/, '').split(/[/.\-_]/)
  const empty = words.find((word) => emptyNames.includes(word.toLowerCase()))
  return empty === undefined ? [] : [`${file.path}: "${empty}" says nothing about the domain. Name it after what it holds.`]
}

function impurity(file: SourceFile, line: number, what: string): string {
  return `${file.path}:${line} uses ${what}: this file is pure. Take the value, or a function that gives it, as a parameter.`
}

interface DeclaredPackages {
  dependencies: Set<string>
  peers: Set<string>
}

function declaredPackages(root: string): DeclaredPackages | undefined {
  const path = join(root, 'package.json')
  if (!existsSync(path)) return undefined
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Record<string, Record<string, string> | undefined>
  const { dependencies = {}, peerDependencies = {} } = manifest
  return { dependencies: new Set(Object.keys(dependencies)), peers: new Set(Object.keys(peerDependencies)) }
}

function isMadeFor(at: string, name: string): boolean {
  return Object.entries(madeFor).some(([glob, peer]) => peer === name && matchesGlob(below(at.replace(/:\d+$/, '')), glob))
}

/** A package that users don't get must not be loaded with ours: a driver is an optional peer, imported when used. */
function packageProblems(at: string, { specifier, kind }: Import, declared: DeclaredPackages | undefined): string[] {
  if (!declared || kind === 'lazy') return []
  const name = specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/')
  if (declared.dependencies.has(name) || (kind === 'type' && declared.peers.has(name)) || isMadeFor(at, name)) return []
  return [
    declared.peers.has(name)
      ? `${at} loads the optional peer ${name} at once: \`await import()\` it where it is used.`
      : `${at} imports ${name}, which users don't have: make it a dependency, or an optional peer that is imported when used.`,
  ]
}

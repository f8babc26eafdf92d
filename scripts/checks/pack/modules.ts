import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CheckResult } from '../report.ts'
import { parse, walk } from '../source.ts'

/**
 * Whether a module of the package is in two of its files. What a module keeps, such as a WeakMap, would then exist twice in a process,
 * and a value of one copy is unknown to the other. The bundler notes in its files which modules they have; a file without such notes is
 * one module.
 */
export function moduleProblems(folder: string, browserFiles: readonly string[] = []): CheckResult {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => name.replaceAll('\\', '/'))
  const code = names.filter((name) => name.endsWith('.js')).toSorted()
  const texts = new Map(code.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
  const problems: string[] = []
  const holders = new Map<string, string[]>()
  for (const [name, text] of texts) {
    for (const module of modulesOf(name, text)) holders.set(module, [...(holders.get(module) ?? []), name])
  }
  const twice = [...holders].filter(([, files]) => files.length > 1)
  for (const [module, files] of twice.slice(0, 20)) {
    problems.push(`${module} is in ${files.join(' and ')}: build all entries from one graph.`)
  }
  if (twice.length > 20) problems.push(`${twice.length - 20} more modules are in two files.`)
  for (const entry of browserFiles) {
    for (const [file, imported] of loadedBy(entry, texts)) {
      if (imported.startsWith('node:')) problems.push(`${entry} loads ${imported} with ${file}, which no browser has.`)
    }
  }
  return { summary: `${holders.size} modules in ${texts.size} files`, problems }
}

/** `src/errors.ts` of a bundle and `errors.js` of a plain build are the same module. */
function modulesOf(name: string, text: string): string[] {
  const noted = [...text.matchAll(/^\/\/#region (\S+)$/gm)].map(([, path = '']) => path).filter((path) => !path.startsWith('\0'))
  return (noted.length > 0 ? noted : [name]).map((path) => path.replace(/^(src|dist)\//, '').replace(/\.[jt]s$/, ''))
}

/** Everything that a file and the files it loads import, without waiting; each with the file that imports it. */
function loadedBy(entry: string, texts: ReadonlyMap<string, string>): Array<[string, string]> {
  const found: Array<[string, string]> = []
  const open = [entry]
  const seen = new Set<string>()
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const text = texts.get(name)
    if (text === undefined || seen.has(name)) continue
    seen.add(name)
    for (const { node } of walk(parse({ path: name, text }))) {
      if (!/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type)) continue
      const { value } = (node.source ?? {}) as { value?: string }
      if (value === undefined) continue
      found.push([name, value])
      if (value.startsWith('.')) open.push(join(name, '..', value).replaceAll('\\', '/'))
    }
  }
  return found
}

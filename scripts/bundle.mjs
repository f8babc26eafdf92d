// Writes `dist`: the code of all entries, worker threads and commands from one module graph, and for each entry the way to its types, which `tsc` wrote.
//
// Every module is in one file of `dist`, so that what a module keeps (a WeakMap, a class that is compared) exists once in a process,
// whichever entries it imports. Files lie beside each other: a worker thread is opened by its file's name, from any file.
import { writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { browserEntries, commandsOf, entriesOf, workersOf } from './checks/entries.ts'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const entries = entriesOf(root)
const workers = workersOf(root)
const input = new Map()
for (const { name, source } of [...entries, ...workers, ...commandsOf(root)]) {
  if (input.has(name)) throw new Error(`${source} and ${input.get(name)} would both be dist/${name}.js: rename one.`)
  input.set(name, source)
}

/**
 * Which chunk shares a module, by the roots (entries, worker threads, modules that are loaded lazily) that reach it; the first that fits is it.
 * Left to the bundler, each combination of roots is a file: 29 for `heed`, and a file costs about 1 ms to load.
 *
 * Whatever a module imports is reached from everywhere the module is. So it fits too, and chunks never import each other in a circle.
 */
const isBrowser = (name) => browserEntries.includes(name)
const isWorker = (name) => workers.some((worker) => worker.name === name)
const chunks = [
  // Nothing of Node, since pages load it.
  ['shared', (reach) => reach.some(isBrowser) && !reach.every(isBrowser)],
  ['client-shared', (reach) => reach.includes('client')],
  ['embed-shared', (reach) => reach.includes('embed')],
  // Threads of the store load this without the rest of the core.
  ['core-storage', (reach) => reach.includes('heed') && (reach.includes('libsql') || reach.some(isWorker))],
  ['core', (reach) => reach.includes('heed')],
  ['policy-shared', (reach) => reach.includes('policy')],
  ['libsql-worker-shared', (reach) => reach.includes('libsql') && reach.some(isWorker)],
  ['libsql-shared', (reach) => reach.includes('libsql')],
]

const reached = new Map()
const build = await rolldown({
  cwd: root,
  input: Object.fromEntries(input),
  platform: 'node',
  tsconfig: false,
  transform: { target: 'es2024', typescript: { onlyRemoveTypeImports: true } },
  // Other packages are the user's install; drivers and validators are loaded when they are used.
  external: [/^node:/, /^[^./]/],
  plugins: [{ name: 'reach', buildEnd() { findReach(this) } }],
  onwarn(warning) {
    // How long a build takes depends on how busy the machine is: no reason to fail.
    if (warning.code === 'PLUGIN_TIMINGS') return
    throw new Error(warning.message)
  },
})
const { output } = await build.write({
  dir: 'dist',
  format: 'esm',
  minify: false,
  entryFileNames: '[name].js',
  chunkFileNames: '[name].js',
  codeSplitting: {
    groups: chunks.map(([name, fits], index) => ({ name, test: (id) => isShared(id, fits), priority: chunks.length - index })),
  },
})
await build.close()

const written = new Set(output.map(({ fileName }) => fileName))
for (const name of input.keys()) {
  if (!written.has(`${name}.js`)) throw new Error(`dist/${name}.js was not written: another file took its name.`)
}
for (const { name, source } of entries) {
  const types = source.replace(/^src\//, './types/').replace(/\.ts$/, '.js')
  writeFileSync(resolve(root, 'dist', `${name}.d.ts`), `export * from '${types}'\n`)
}

/** Notes for each module the roots that load it without waiting. */
function findReach(context) {
  const roots = new Map([...input].map(([name, source]) => [resolve(root, source), name]))
  const ids = [...context.getModuleIds()]
  for (const lazy of ids.flatMap((id) => context.getModuleInfo(id).dynamicallyImportedIds)) {
    if (!roots.has(lazy)) roots.set(lazy, relative(root, lazy))
  }
  for (const [start, name] of roots) {
    const open = [start]
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const info = context.getModuleInfo(id)
      if (!info || info.isExternal || reached.get(id)?.has(name)) continue
      reached.set(id, (reached.get(id) ?? new Set()).add(name))
      open.push(...info.importedIds)
    }
  }
}

function isShared(id, fits) {
  const reach = [...(reached.get(id) ?? [])]
  return reach.length > 1 && fits(reach)
}

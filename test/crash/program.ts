import { join } from 'node:path'
import { rolldown, type Plugin } from 'rolldown'

const here = import.meta.dirname
const source = join(here, '../../src')

/** The files that threads of the store run, beside the program. */
const workers = Object.fromEntries(['checkpoint-worker', 'bulk-worker'].map((name) => [name, join(source, `store/sqlite/${name}.ts`)]))

/** A place in the sources, and what a broken build has there. */
export interface Fault {
  file: string
  changes: ReadonlyArray<readonly [text: string, instead: string]>
}

/**
 * Bundles the program of a process and everything it needs: it starts several times as fast, and is started very often.
 * `entry` is relative to this folder.
 */
export async function buildProgram(folder: string, fault?: Fault, entry = 'child.ts'): Promise<string> {
  const build = await rolldown({
    input: { child: join(here, entry), ...workers },
    platform: 'node',
    // Providers are loaded where they are used, and no program uses one.
    external: [/^node:/, /^@ai-sdk\/(?!provider$)/],
    logLevel: 'silent',
    plugins: fault ? [breaking(fault)] : [],
  })
  await build.write({ dir: folder, format: 'esm', entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' })
  await build.close()
  return join(folder, 'child.js')
}

/** Breaks the build on purpose. Throws where the text is not found: a fault that isn't there proves nothing. */
function breaking({ file, changes }: Fault): Plugin {
  return {
    name: 'breaking',
    transform(code, id) {
      if (id !== join(source, file)) return undefined
      return changes.reduce((whole, [text, instead]) => {
        if (!whole.includes(text)) throw new Error(`${file} has no '${text}' that could be broken`)
        return whole.replace(text, () => instead)
      }, code)
    },
  }
}

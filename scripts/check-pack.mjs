import { fileURLToPath } from 'node:url'
import { browserEntries } from './checks/entries.ts'
import { checkPack } from './checks/pack/pack.ts'
import { findProgram } from './programs.ts'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const found = await findProgram('chromium')
checkPack(process.argv[2] ?? process.cwd(), {
  tsc: here('../node_modules/.bin/tsc'),
  limits: { packages: 15, megabytes: 15 },
  browserFiles: browserEntries.map((name) => `${name}.js`),
  programs: {
    folder: here('../test/package/programs'),
    pages: here('../test/browser/pages'),
    ...('path' in found ? { chromium: found.path } : {}),
  },
})

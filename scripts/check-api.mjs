// The public surface against api/, and the documentation with the reference that is made of it. With `--write` (`npm run api`), api/ is written anew.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { apiProblems, apiReport } from './checks/api.ts'
import { entriesOf } from './checks/entries.ts'
import { report } from './checks/report.ts'
import { buildSite, readDocumentation } from './docs/site.ts'

const words = process.argv.slice(2)
const write = words.includes('--write')
const root = words.find((word) => !word.startsWith('--')) ?? process.cwd()
const folder = join(root, 'api')

const types = mkdtempSync(join(tmpdir(), 'heed-api-'))
try {
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  execFileSync(tsc, ['-p', 'tsconfig.build.json', '--emitDeclarationOnly', '--outDir', types], { cwd: root, stdio: 'inherit' })
  const current = apiReport(types, entriesOf(root))
  mkdirSync(folder, { recursive: true })
  const stored = Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
  if (write) {
    for (const name of Object.keys(stored)) if (!(name in current)) rmSync(join(folder, name))
    for (const [name, text] of Object.entries(current)) writeFileSync(join(folder, name), text)
  }
  const names = Object.keys(current).length
  report('api', { summary: `${names} reports`, problems: write ? [] : apiProblems(stored, current) })
  const documentation = readDocumentation(root, types)
  const { files, problems } = buildSite(root, join(types, 'site'), documentation)
  const undocumented = documentation.reference.undocumented.names.map((name) => `${name} has no doc comment: say what it is, and what a caller may rely on.`)
  report('docs', { summary: `${files} files of the site`, problems: [...problems, ...undocumented] })
} finally {
  rmSync(types, { recursive: true, force: true })
}

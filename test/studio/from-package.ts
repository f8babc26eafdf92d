// Packs the package, installs it in an empty folder, and runs the campaigns of Studio on what is installed: `npm run test:studio [-- options of vitest]`.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const work = mkdtempSync(join(tmpdir(), 'heed-studio-'))

/** Runs npm, with its output on this terminal where nothing reads it. */
function npm(cwd: string, ...args: string[]): void {
  execFileSync('npm', args, { cwd, stdio: ['ignore', 'inherit', 'inherit'] })
}

try {
  npm(root, 'pack', '--silent', '--pack-destination', work)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const project = join(work, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }))
  npm(project, 'install', join(work, `heed-${version}.tgz`), '--no-audit', '--no-fund')
  const env = { HEED_STUDIO_LONG: '1', ...process.env, HEED_PACKAGE: join(project, 'node_modules/heed') }
  const args = ['vitest', 'run', '--config', 'vitest.package.config.ts', ...process.argv.slice(2)]
  process.exitCode = spawnSync('npx', args, { cwd: root, env, stdio: 'inherit' }).status ?? 1
} finally {
  rmSync(work, { recursive: true, force: true })
}

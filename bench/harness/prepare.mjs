import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { progress } from './print.mjs'

/**
 * What the benchmarks stand on: the peers in `bench/node_modules`, and Heed as a stranger gets it, packed and installed into an empty
 * project below `work`. That copy doesn't change while the benchmarks run, whatever happens to the working tree. Answers the project.
 */
export function prepare({ root, bench, work }) {
  installPeers(bench)
  progress('building and packing heed')
  const packed = JSON.parse(npm(root, ['pack', '--json', '--silent', '--pack-destination', work]).replace(/^[^[{]*/, ''))
  const [{ filename }] = Object.values(packed)
  const heedProject = emptyProject(join(work, 'project'))
  progress('installing it into an empty project')
  // The driver is the user's package.
  npm(heedProject, ['install', join(work, filename), 'pg@8.23.1', '--prefer-offline'])
  return heedProject
}

function installPeers(bench) {
  const lock = join(bench, 'package-lock.json')
  const installed = join(bench, 'node_modules', '.installed-lock.json')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(lock, 'utf8')) return
  progress('installing what Heed is measured beside (about 190 MB, once)')
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: bench, env: ownEnvironment(), stdio: ['ignore', 'inherit', 'inherit'] })
  copyFileSync(lock, installed)
}

export function emptyProject(folder) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }))
  return folder
}

export function npm(cwd, args) {
  try {
    return execFileSync('npm', [...args, '--no-audit', '--no-fund'], { cwd, env: ownEnvironment(), encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    throw new Error(`npm ${args[0]} failed:\n${`${error.stdout ?? ''}${error.stderr ?? ''}`.trim() || error.message}`)
  }
}

/** Without what the npm that runs the benchmarks tells its scripts about the package it runs in. */
function ownEnvironment() {
  const told = /^(npm_package_|npm_lifecycle_|npm_command$|npm_config_(local_prefix|global|prefix)$|INIT_CWD$)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !told.test(name)))
}

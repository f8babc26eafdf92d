// A browser for tests. `node scripts/chromium.mjs` says where it is, and installs it when it is missing.
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/**
 * Where Chromium is, or why there is none. With `install`, a missing one is installed by the package manager of Debian where that is
 * allowed. HEED_CHROMIUM names another one.
 *
 * @param {{ install?: boolean }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>}
 */
export async function findChromium({ install = false } = {}) {
  const named = process.env.HEED_CHROMIUM
  if (named) return (await isExecutable(named)) ? { path: named } : { missing: `HEED_CHROMIUM names ${named}, which can't be run` }
  const path = await onPath()
  if (path) return { path }
  if (!install) return { missing: 'Chromium is not installed' }
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return { missing: 'Chromium is not installed, and only root can install it' }
  try {
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    const apt = (...words) => run('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...words], { env: environment, timeout: 240_000, maxBuffer: 1 << 24 })
    await apt('update').catch(() => {})
    await apt('install', '-y', '--no-install-recommends', 'chromium')
  } catch (error) {
    return { missing: `Chromium could not be installed: ${String(error.message).split('\n')[0]}` }
  }
  const installed = await onPath()
  return installed ? { path: installed } : { missing: 'apt-get installed no Chromium' }
}

async function onPath() {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of names) if (folder !== '' && (await isExecutable(join(folder, name)))) return join(folder, name)
  }
  return undefined
}

function isExecutable(path) {
  return access(path, constants.X_OK).then(() => true, () => false)
}

if (import.meta.main) {
  const found = await findChromium({ install: true })
  console.log('path' in found ? found.path : found.missing)
  process.exitCode = 'path' in found ? 0 : 1
}

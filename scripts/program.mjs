// Programs of the system that tests need.
import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/**
 * Where a program is, or why there is none. With `install`, a missing one is installed by the package manager of Debian where that is
 * allowed.
 *
 * @param {{ title: string, names: string[], debian: string, variable?: string }} program `variable`: of the environment, names another one
 * @param {{ install?: boolean }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>}
 */
export async function findProgram({ title, names, debian, variable }, { install = false } = {}) {
  const named = variable && process.env[variable]
  if (named) return (await isExecutable(named)) ? { path: named } : { missing: `${variable} names ${named}, which can't be run` }
  const path = await onPath(names)
  if (path) return { path }
  if (!install) return { missing: `${title} is not installed` }
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return { missing: `${title} is not installed, and only root can install it` }
  try {
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    const apt = (...words) => run('apt-get', ['-o', 'DPkg::Lock::Timeout=120', ...words], { env: environment, timeout: 240_000, maxBuffer: 1 << 24 })
    await apt('update').catch(() => {})
    await apt('install', '-y', '--no-install-recommends', debian)
  } catch (error) {
    return { missing: `${title} could not be installed: ${String(error.message).split('\n')[0]}` }
  }
  const installed = await onPath(names)
  return installed ? { path: installed } : { missing: `apt-get installed no ${title}` }
}

async function onPath(names) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of names) if (folder !== '' && (await isExecutable(join(folder, name)))) return join(folder, name)
  }
  return undefined
}

function isExecutable(path) {
  return access(path, constants.X_OK).then(() => true, () => false)
}

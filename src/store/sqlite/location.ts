import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { mkdir, open, stat } from 'node:fs/promises'
import { HeedError } from '../../base/errors.ts'
import { realFile } from '../real-file.ts'

/** Where a database is: a file, this process's memory, or a server. */
export type Location = LocalLocation | { kind: 'remote'; url: string }

export type LocalLocation = { kind: 'file'; path: string } | { kind: 'memory' }

export function parseLocation(url: string): Location {
  if (typeof url !== 'string') {
    throw new HeedError('invalid_argument', 'url is missing. Use file:./path.db, :memory:, or libsql://… and https://… for a server.', {
      details: { field: 'url' },
    })
  }
  if (url === ':memory:' || url === 'file::memory:') return { kind: 'memory' }
  if (/^(?:libsql|https?|wss?):\/\/./i.test(url)) return { kind: 'remote', url }
  if (!url.startsWith('file:') || url.length === 5 || url.includes('?')) {
    throw new HeedError(
      'invalid_argument',
      `"${url}" names no database. Use file:./path.db, :memory:, or libsql://… and https://… for a server.`,
      { details: { field: 'url' } },
    )
  }
  return { kind: 'file', path: url.startsWith('file://') ? fileURLToPath(url) : resolve(url.slice(5)) }
}

/** The same for every spelling of one place; nothing for memory, which is each connection's own. */
export function placeAt(location: Location): string | undefined {
  if (location.kind === 'memory') return undefined
  return location.kind === 'file' ? `file:${realFile(location.path)}` : location.url
}

/** Names a database on a bus: the same in every process, without credentials; undefined for memory, which is each connection's own. */
export function namespaceAt(location: Location): string | undefined {
  if (location.kind !== 'remote') return placeAt(location)
  const { protocol, hostname, port, pathname } = new URL(location.url)
  const isPlain = protocol === 'http:' || protocol === 'ws:'
  return `libsql:${hostname.toLowerCase()}:${port || (isPlain ? '80' : '443')}${pathname.replace(/\/$/, '')}`
}

/** The one name of a file, however it was written. Makes its folder, which SQLite wouldn't. */
export async function resolveFile(path: string): Promise<string> {
  const file = realFile(path)
  await makeFolder(dirname(file))
  return file
}

/**
 * Makes a folder and those above it, where they do not exist, and syncs the folder above each. Node's own `recursive` never ends on a file
 * system that denies the existence of a folder in which it allows no files, such as /proc.
 */
export async function makeFolder(folder: string): Promise<void> {
  try {
    return await makeOne(folder)
  } catch (error) {
    const above = dirname(folder)
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || above === folder) throw error
    await makeFolder(above)
  }
  await makeOne(folder)
}

async function makeOne(folder: string): Promise<void> {
  try {
    await mkdir(folder)
  } catch (error) {
    const found = (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : await stat(folder).catch(() => undefined)
    if (!found?.isDirectory()) throw error
    return
  }
  // Without this a power loss may remove the new folder with everything that was synced in it.
  const above = await open(dirname(folder), 'r')
  await above.sync().finally(() => above.close())
}

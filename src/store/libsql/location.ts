import { mkdir, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HeedError } from '../../errors.ts'

/** Where a database is: a file, or this process's memory. */
export type Location = { kind: 'file'; path: string } | { kind: 'memory' }

export function parseLocation(url: string): Location {
  if (url === ':memory:' || url === 'file::memory:') return { kind: 'memory' }
  if (/^(?:libsql|https?|wss?):/i.test(url)) {
    throw new HeedError('unsupported_option', `Remote databases are not supported yet: ${url.slice(0, url.indexOf(':'))}: URLs come later. Use a file: URL.`, {
      details: { field: 'url' },
    })
  }
  if (!url.startsWith('file:') || url.length === 5 || url.includes('?')) {
    throw new HeedError('invalid_argument', `"${url}" names no database. Use file:./path.db or :memory:.`, { details: { field: 'url' } })
  }
  return { kind: 'file', path: url.startsWith('file://') ? fileURLToPath(url) : resolve(url.slice(5)) }
}

/** The one name of a file, however it was written. Makes its folder, which SQLite wouldn't. */
export async function resolveFile(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const folder = dirname(path)
    await mkdir(folder, { recursive: true })
    return join(await realpath(folder), basename(path))
  }
}

import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Makes a folder and those above it, where they aren't there. Node's own `recursive` goes on for ever where a file system denies that a folder is
 * there which it doesn't let anybody make something in, such as /proc.
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
  }
}

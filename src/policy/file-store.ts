import { createHash, randomUUID } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { checkNames, checkText } from '../base/arguments.ts'
import { HeedError } from '../base/errors.ts'
import { isPlainObject } from '../base/json.ts'
import type { PolicySet } from './schema.ts'
import { checkSaveOptions, policyConflict, type PolicyStore, type SavePoliciesOptions, type StoredPolicies } from './store.ts'

/** The options of `FilePolicyStore`. */
export interface FilePolicyStoreOptions {
  /** Is created with the first save. */
  folder: string
}

/** How many earlier versions of a tenant's policies are kept. */
const keptVersions = 10

/**
 * Keeps policies in a folder, which several processes may share. Each version is a file that is never changed: a save makes the file of
 * the next version, and fails if another process made it first.
 */
export class FilePolicyStore implements PolicyStore {
  readonly #folder: string

  constructor(options: FilePolicyStoreOptions) {
    checkNames('A FilePolicyStore', options, ['folder'])
    checkText('folder', options.folder)
    this.#folder = options.folder
  }

  async getPolicies(tenant: string): Promise<StoredPolicies | undefined> {
    const folder = this.#folderOf(tenant)
    for (;;) {
      const version = (await versionsIn(folder)).at(-1)
      if (version === undefined) return undefined
      const path = fileOf(folder, version)
      let text: string
      try {
        text = await readFile(path, 'utf8')
      } catch (error) {
        // Removed by a process that saved newer versions meanwhile.
        if (isMissing(error)) continue
        throw error
      }
      return { policies: parseFile(text, path, tenant), version }
    }
  }

  async savePolicies(tenant: string, policies: PolicySet, options: SavePoliciesOptions = {}): Promise<number> {
    checkSaveOptions(options)
    const { ifVersion } = options
    const folder = this.#folderOf(tenant)
    await mkdir(folder, { recursive: true })
    const draft = join(folder, `${randomUUID()}.draft`)
    try {
      await writeWhole(draft, JSON.stringify({ tenant, policies }, null, 2))
      for (;;) {
        const versions = await versionsIn(folder)
        const stored = versions.at(-1) ?? 0
        if (ifVersion !== undefined && ifVersion !== stored) throw policyConflict(tenant, stored)
        const version = stored + 1
        try {
          await link(draft, fileOf(folder, version))
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue
          throw error
        }
        await syncFolder(folder)
        for (const old of versions.slice(0, -keptVersions)) await rm(fileOf(folder, old), { force: true })
        return version
      }
    } finally {
      await rm(draft, { force: true })
    }
  }

  /** A tenant may have any name, and a folder may not. */
  #folderOf(tenant: string): string {
    return join(this.#folder, createHash('sha256').update(tenant).digest('hex').slice(0, 32))
  }
}

function fileOf(folder: string, version: number): string {
  return join(folder, `${version}.json`)
}

async function versionsIn(folder: string): Promise<number[]> {
  try {
    const names = await readdir(folder)
    return names.flatMap((name) => /^([1-9]\d{0,14})\.json$/.exec(name)?.[1] ?? []).map(Number).toSorted((one, other) => one - other)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

function parseFile(text: string, path: string, tenant: string): PolicySet {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  const policies = isPlainObject(value) && value.tenant === tenant ? value.policies : undefined
  if (isPlainObject(policies) && Object.values(policies).every((policy) => typeof policy === 'string')) return policies as PolicySet
  throw new HeedError('store_corrupt', `${path} is not a file of policies. Restore it, or remove it to use the version before.`, {
    details: { path },
  })
}

async function writeWhole(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx')
  await closing(file, async () => {
    await file.writeFile(text)
    await file.sync()
  })
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  await closing(folder, () => folder.sync())
}

async function closing(file: FileHandle, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } finally {
    await file.close()
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

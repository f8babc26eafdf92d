import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** The optional package that makes vectors faster. */
export const onnxRuntimePackage = 'onnxruntime-node'

/** A package that the user has to install is not installed. */
export class PackageNotInstalled extends Error {
  readonly packageName: string

  constructor(packageName: string, cause: unknown) {
    super(`${packageName} is not installed`, { cause })
    this.packageName = packageName
  }
}

/** Whether `importPackage` would find the package. */
export function isInstalled(name: string): boolean {
  return [import.meta.url, join(process.cwd(), 'index.js')].some((from) => {
    try {
      return createRequire(from).resolve(name) !== ''
    } catch {
      return false
    }
  })
}

/** Imports a package from where Heed is installed, else from the working directory of the program. */
export async function importPackage<Module>(name: string): Promise<Module> {
  try {
    return (await import(name)) as Module
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
  }
  let path: string
  try {
    path = createRequire(join(process.cwd(), 'index.js')).resolve(name)
  } catch (error) {
    throw new PackageNotInstalled(name, error)
  }
  return (await import(pathToFileURL(path).href)) as Module
}

import { HeedError } from './errors.ts'

const oldest = 24

/** Throws on a Node that is too old, which would fail later with an error that names a module of Node. Other runtimes pass. */
export function checkNodeVersion(): void {
  const version = (globalThis.process as NodeJS.Process | undefined)?.versions?.node
  if (version === undefined || !(Number.parseInt(version, 10) < oldest)) return
  const remedy = `Install Node ${oldest} and run the program with it.`
  const error = new HeedError('unsupported_runtime', `Heed needs Node ${oldest} or newer, and this is Node ${version}. ${remedy}`)
  // It is thrown during an import, where frames name only files of this package: the message alone is easier to read.
  error.stack = `${error.name}: ${error.message}`
  throw error
}

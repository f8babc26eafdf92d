// curl for tests. `node scripts/curl.mjs` says where it is, and installs it when it is missing.
import { findProgram } from './program.mjs'

/**
 * Where curl is, or why there is none. With `install`, a missing one is installed where that is allowed. HEED_CURL names another one.
 *
 * @param {{ install?: boolean }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>}
 */
export function findCurl(options) {
  return findProgram({ title: 'curl', names: ['curl'], debian: 'curl', variable: 'HEED_CURL' }, options)
}

if (import.meta.main) {
  const found = await findCurl({ install: true })
  console.log('path' in found ? found.path : found.missing)
  process.exitCode = 'path' in found ? 0 : 1
}

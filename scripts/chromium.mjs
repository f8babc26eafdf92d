// A browser for tests. `node scripts/chromium.mjs` says where it is, and installs it when it is missing.
import { findProgram } from './program.mjs'

const chromium = { title: 'Chromium', names: ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'], debian: 'chromium', variable: 'HEED_CHROMIUM' }

/**
 * Where Chromium is, or why there is none. With `install`, a missing one is installed where that is allowed. HEED_CHROMIUM names
 * another one.
 *
 * @param {{ install?: boolean }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>}
 */
export function findChromium(options) {
  return findProgram(chromium, options)
}

if (import.meta.main) {
  const found = await findChromium({ install: true })
  console.log('path' in found ? found.path : found.missing)
  process.exitCode = 'path' in found ? 0 : 1
}

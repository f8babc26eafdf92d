// ONNX Runtime, which tests of the local embedder need. `node scripts/onnxruntime.ts` prints the folder that has it.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Found } from './programs.ts'

const pinned = join(import.meta.dirname, 'onnxruntime')
const cache = join(import.meta.dirname, '../node_modules/.cache')
const lock = readFileSync(join(pinned, 'package-lock.json'))
const folder = join(cache, `onnxruntime-${createHash('sha256').update(lock).digest('hex').slice(0, 12)}`)

/**
 * A folder from which `onnxruntime-node` can be loaded. It is apart from the packages of the project: where it is among them, the local
 * embedder takes it, and no test would run the engine that most users have. Its lock file is `scripts/onnxruntime/package-lock.json`.
 */
export async function findOnnxRuntime(): Promise<Found> {
  if (existsSync(folder)) return { path: folder }
  await mkdir(cache, { recursive: true })
  const building = await mkdtemp(join(cache, 'installing-'))
  try {
    await cp(pinned, building, { recursive: true })
    // Its install script only loads what GPUs need.
    await promisify(execFile)('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: building, timeout: 300_000 })
    await rename(building, folder)
    return { path: folder }
  } catch (error) {
    return existsSync(folder) ? { path: folder } : { missing: `onnxruntime-node could not be installed: ${String((error as Error).message).split('\n')[0]}` }
  } finally {
    await rm(building, { recursive: true, force: true })
  }
}

if (import.meta.main) {
  const found = await findOnnxRuntime()
  console.log('path' in found ? found.path : found.missing)
  process.exitCode = 'path' in found ? 0 : 1
}

import { Session } from 'node:inspector/promises'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The functions of `src` below `root` that ran while `work` did. */
export async function coverage(root, work) {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  await session.post('Profiler.stopPreciseCoverage')
  session.disconnect()

  const files = []
  for (const { url, functions } of result) {
    if (!url.startsWith('file:')) continue
    const path = fileURLToPath(url)
    if (!path.startsWith(`${root}src/`)) continue
    const length = readFileSync(path, 'utf8').length
    // The module's own body counts as no function.
    const ran = functions.filter(({ ranges: [range] }) => range.count > 0 && !(range.startOffset === 0 && range.endOffset >= length))
    if (ran.length > 0) files.push({ path, functions: ran.map(({ functionName }) => functionName || '(anonymous)') })
  }
  files.sort((a, b) => a.path.localeCompare(b.path))
  const lengths = files.map(({ path }) => readFileSync(path, 'utf8').split('\n').length - 1)
  return {
    files,
    functions: files.reduce((sum, file) => sum + file.functions.length, 0),
    small: lengths.filter((lines) => lines <= 60).length,
    lines: lengths.reduce((sum, lines) => sum + lines, 0),
  }
}

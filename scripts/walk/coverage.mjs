import { Session } from 'node:inspector/promises'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The files of `src` below `root`, and the functions of each that ran while `work` did. */
export async function coverage(root, work) {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await work()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  await session.post('Profiler.stopPreciseCoverage')
  session.disconnect()

  const files = new Map()
  for (const { url, functions } of result) {
    if (!url.startsWith('file:')) continue
    const path = fileURLToPath(url)
    if (!path.startsWith(`${root}src/`)) continue
    const length = readFileSync(path, 'utf8').length
    // The module's own body counts as no function.
    const ran = functions.filter(({ ranges: [range] }) => range.count > 0 && !(range.startOffset === 0 && range.endOffset >= length))
    files.set(path, new Map(ran.map(({ functionName, ranges: [{ startOffset }] }) => [startOffset, functionName || '(anonymous)'])))
  }
  return files
}

/** What ran in each of the measurements. */
export function commonTo([first, ...others]) {
  const files = []
  for (const [path, ran] of first) {
    const functions = [...ran].filter(([start]) => others.every((other) => other.get(path)?.has(start))).map(([, name]) => name)
    if (functions.length > 0) files.push({ path, functions })
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

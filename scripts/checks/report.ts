/** What every check returns: what is wrong, each with what to do about it, and one line that says what was looked at. */
export interface CheckResult {
  summary: string
  problems: string[]
}

/** Prints a check's result and makes the process end non-zero when something is wrong. */
export function report(name: string, { summary, problems }: CheckResult): void {
  for (const problem of problems) console.error(`${name}: ${problem}`)
  console.log(`${name}: ${problems.length === 0 ? 'ok' : `${problems.length} wrong`} (${summary})`)
  if (problems.length > 0) process.exitCode = 1
}

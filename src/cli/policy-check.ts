import { readFile } from 'node:fs/promises'
import { styleText } from 'node:util'
import { withoutMark } from '../policy/check.ts'
import { CedarPolicies, type PolicyProblem } from '../policy/index.ts'
import { exitCodes, type ExitCode } from './shell/failure.ts'
import type { Output } from './shell/output.ts'

/** Checks each file and prints what is wrong with it, as compilers do. */
export async function checkPolicyFiles(files: readonly string[], output: Output): Promise<ExitCode> {
  const policies = new CedarPolicies()
  let failed = 0
  for (const file of files) failed += (await checkFile(policies, file, { isOneOfSeveral: files.length > 1, output })) ? 0 : 1
  return failed === 0 ? exitCodes.done : exitCodes.problems
}

async function checkFile(
  policies: CedarPolicies, file: string, { isOneOfSeveral, output }: { isOneOfSeveral: boolean; output: Output },
): Promise<boolean> {
  const answer = (text: string, result: { policies: number; problems: readonly unknown[] }) => {
    if (output.isJSON || result.problems.length === 0) output.answer(text, { type: 'policy-file', file, ...result })
    else console.error(text)
  }
  let text: string
  try {
    text = withoutMark(await readFile(file, 'utf8'))
  } catch (error) {
    answer(`${file}: ${reason(error)}`, { policies: 0, problems: [{ message: reason(error) }] })
    return false
  }
  const { problems, policies: found } = await policies.checkPolicies(text)
  const count = Object.keys(found).length
  const counted = `${isOneOfSeveral ? `${file}: ` : ''}ok (${count} ${count === 1 ? 'policy' : 'policies'})`
  const described = problems.map((problem) => describeProblem(file, text, problem)).join('\n')
  answer(problems.length === 0 ? counted : described, { policies: count, problems })
  return problems.length === 0
}

/** The place, the message, the line, and a mark below the offending text. */
function describeProblem(file: string, text: string, { line, column, length, message, help }: PolicyProblem): string {
  const source = (text.split('\n')[line - 1] ?? '').replace(/\r$/, '')
  // Tabs stay, so that the mark is below its text.
  const margin = source.slice(0, column - 1).replaceAll(/[^\t]/g, ' ')
  const mark = '^'.repeat(Math.max(1, Math.min(length, source.length - column + 1)))
  const place = paint('bold', `${file}:${line}:${column}:`)
  return `${place} ${message}${help === undefined ? '' : ` (${help})`}\n  ${source}\n  ${margin}${paint('red', mark)}`
}

/** Node leaves colors out where the stream is not a terminal, and if NO_COLOR is set. */
function paint(format: 'bold' | 'red', text: string): string {
  return styleText(format, text, { stream: process.stderr })
}

function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'there is no such file'
  return code === 'EISDIR' ? 'is a folder' : message
}

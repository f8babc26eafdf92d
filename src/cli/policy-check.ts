import { readFile } from 'node:fs/promises'
import { styleText } from 'node:util'
import { CedarPolicies, type PolicyProblem } from '../policy/index.ts'

/** Checks each file and prints what is wrong with it, as compilers do. */
export async function checkPolicyFiles(files: readonly string[]): Promise<number> {
  const option = files.find((file) => file.startsWith('-'))
  if (files.length === 0 || option !== undefined) {
    console.error(option === undefined ? 'heed policy check: name the file to check.' : `heed policy check: there is no option ${option}.`)
    return 2
  }
  const policies = new CedarPolicies()
  let failed = 0
  for (const file of files) failed += (await checkFile(policies, file, files.length > 1)) ? 0 : 1
  return failed === 0 ? 0 : 1
}

async function checkFile(policies: CedarPolicies, file: string, isOneOfSeveral: boolean): Promise<boolean> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    console.error(`${file}: ${reason(error)}`)
    return false
  }
  const { problems, policies: found } = await policies.checkPolicies(text)
  for (const problem of problems) console.error(describeProblem(file, text, problem))
  if (problems.length > 0) return false
  const count = Object.keys(found).length
  console.log(`${isOneOfSeveral ? `${file}: ` : ''}ok (${count} ${count === 1 ? 'policy' : 'policies'})`)
  return true
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

import { styleText } from 'node:util'
import { describe } from '../../base/errors.ts'
import { redactText } from '../../base/redact.ts'

/** What one check found. `warn`: it works, and something should be changed. `fail`: it does not work. */
export interface Finding {
  check: string
  status: 'ok' | 'warn' | 'fail'
  message: string
  /** What to do. Each warning and each failure has one. */
  remedy?: string
}

export const ok = (check: string, message: string): Finding => ({ check, status: 'ok', message })
export const warn = (check: string, message: string, remedy: string): Finding => ({ check, status: 'warn', message, remedy })
export const fail = (check: string, message: string, remedy: string): Finding => ({ check, status: 'fail', message, remedy })

/** The text of an error without secrets and without its stack. */
export function reasonOf(error: unknown): string {
  return redactText(describe(error)).split('\n', 1)[0] ?? ''
}

const marks = { ok: styled('green', 'ok  '), warn: styled('yellow', 'warn'), fail: styled('red', 'fail') }

/** Node leaves colors out where the output is not a terminal, and if NO_COLOR is set. */
function styled(color: 'green' | 'yellow' | 'red' | 'dim', text: string): () => string {
  return () => styleText(color, text, { stream: process.stdout })
}

/** The findings as lines for people. */
export function report(findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ status, message, remedy }) => [
    `  ${marks[status]()}  ${message}`,
    ...(remedy === undefined ? [] : [`        ${styled('dim', remedy)()}`]),
  ])
  const count = (status: Finding['status'], name: string) => {
    const found = findings.filter((finding) => finding.status === status).length
    return found === 0 ? [] : [`${found} ${name}${found === 1 ? '' : 's'}`]
  }
  const summary = [...count('fail', 'problem'), ...count('warn', 'warning')].join(', ')
  return `${lines.join('\n')}\n\n${summary === '' ? 'No problems.' : `${summary}.`}`
}

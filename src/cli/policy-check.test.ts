import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const program = join(import.meta.dirname, 'command-line.ts')
let folder: string

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'heed-cli-test-'))))
afterEach(() => rmSync(folder, { recursive: true }))

interface Ended {
  code: number | null
  output: string
  errors: string
}

/** Runs `heed` in the folder, without a terminal. */
async function heed(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [program, ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended: Ended = { code: null, output: '', errors: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (ended.output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (ended.errors += text))
  await once(child, 'close')
  return { ...ended, code: child.exitCode }
}

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text)
}

const fine = `@id("forbid_email")
forbid(
  principal,
  action == Policy::Action::"receive_signal",
  resource in Policy::Channel::"email"
);
`

describe('heed policy check', () => {
  it('[V4.8] counts the policies of a file without problems', async () => {
    write('one.cedar', fine)
    expect(await heed('policy', 'check', 'one.cedar')).toEqual({ code: 0, output: 'ok (1 policy)\n', errors: '' })
    write('two.cedar', `${fine}permit(principal, action, resource);`)
    expect(await heed('policy', 'check', 'one.cedar', 'two.cedar')).toEqual({
      code: 0, output: 'one.cedar: ok (1 policy)\ntwo.cedar: ok (2 policies)\n', errors: '',
    })
  })

  it('[V4.8] points to each problem of a file, with a suggestion, and ends with 5', async () => {
    write('bad.cedar', `// é\n${fine}\tforbid(principal, action == Policy::Action::"recieve_signal", resource);\npermit(principal is Policy::Agnt, action, resource);\n`)
    expect(await heed('policy', 'check', 'bad.cedar')).toEqual({
      code: 5,
      output: '',
      errors: [
        'bad.cedar:8:30: unrecognized action `Policy::Action::"recieve_signal"` (did you mean `Policy::Action::"receive_signal"`?)',
        '  \tforbid(principal, action == Policy::Action::"recieve_signal", resource);',
        `  \t${' '.repeat(28)}${'^'.repeat(32)}`,
        'bad.cedar:9:21: unrecognized entity type `Policy::Agnt` (did you mean `Policy::Agent`?)',
        '  permit(principal is Policy::Agnt, action, resource);',
        `  ${' '.repeat(20)}${'^'.repeat(12)}`,
        '',
      ].join('\n'),
    })
  })

  it('[V4.8] a byte order mark is no part of a file: columns count from the text', async () => {
    write('marked.cedar', `\uFEFF${fine}`)
    expect(await heed('policy', 'check', 'marked.cedar')).toEqual({ code: 0, output: 'ok (1 policy)\n', errors: '' })
    write('bad.cedar', '\uFEFFpermit(principal is Policy::Agnt, action, resource);\n')
    expect((await heed('policy', 'check', 'bad.cedar')).errors).toBe([
      'bad.cedar:1:21: unrecognized entity type `Policy::Agnt` (did you mean `Policy::Agent`?)',
      '  permit(principal is Policy::Agnt, action, resource);', `  ${' '.repeat(20)}${'^'.repeat(12)}`, '',
    ].join('\n'))
  })

  it('[V4.8] points to the end of a file that ends too early, and to an id that is used twice', async () => {
    write('short.cedar', 'permit(principal, action, resource)')
    expect(await heed('policy', 'check', 'short.cedar')).toMatchObject({
      code: 5, errors: expect.stringMatching(/^short\.cedar:1:36: unexpected end of input \(.*\)\n {2}permit\(principal, action, resource\)\n {37}\^\n$/) as string,
    })
    write('twice.cedar', `${fine}\n${fine}`)
    expect((await heed('policy', 'check', 'twice.cedar')).errors).toContain('twice.cedar:8:1: two policies have the id `forbid_email`')
  })

  it('[V4.8] says what is wrong with its arguments, without a stack', async () => {
    expect(await heed('policy', 'check', 'missing.cedar')).toEqual({ code: 5, output: '', errors: 'missing.cedar: there is no such file\n' })
    expect(await heed('policy', 'check', '.')).toEqual({ code: 5, output: '', errors: '.: is a folder\n' })
    expect(await heed('policy', 'check')).toEqual({ code: 2, output: '', errors: 'heed policy check: name the FILE: a file with policies.\n' })
    expect(await heed('policy', 'check', '--strict')).toMatchObject({ code: 2, errors: 'heed policy check: there is no option --strict.\n' })
    expect(await heed('--help')).toMatchObject({ code: 0, output: expect.stringContaining('policy check FILE...') as string, errors: '' })
  })

  it('[V4.8] [C1.3] prints one object for each file with --json, problems included', async () => {
    write('fine.cedar', fine)
    write('bad.cedar', 'permit(principal is Policy::Agnt, action, resource);')
    const { code, output, errors } = await heed('policy', 'check', '--json', 'fine.cedar', 'bad.cedar', 'missing.cedar')
    expect({ code, errors }).toEqual({ code: 5, errors: '' })
    expect(output.trim().split('\n').map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { type: 'policy-file', file: 'fine.cedar', policies: 1, problems: [] },
      { type: 'policy-file', file: 'bad.cedar', problems: [{ line: 1, column: 21, message: 'unrecognized entity type `Policy::Agnt`' }] },
      { type: 'policy-file', file: 'missing.cedar', policies: 0, problems: [{ message: 'there is no such file' }] },
    ])
  })
})

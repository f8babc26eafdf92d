import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** What a reader has of their own: components that take what they are given. */
const own = `declare const Message: (props: object) => React.JSX.Element
declare const Ask: (props: { tool?: string; input: unknown; onYes?: () => void; onNo?: () => void; onGive?: (output: string) => void }) => React.JSX.Element
declare const Composer: (props: { onSend: (text: string) => void; onQueue: (text: string) => void; onStop: () => void }) => React.JSX.Element
export {}
`

it('the components in docs/react.md hold under strict types, as they stand', async () => {
  const blocks = [...readFileSync(join(root, 'docs/react.md'), 'utf8').matchAll(/```tsx\n(.*?)```/gs)].map(([, code = '']) => code)
  expect(blocks.length).toBe(5)
  const folder = mkdtempSync(join(tmpdir(), 'heed-docs-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as { compilerOptions: { paths: Record<string, string[]> } }
  const paths = Object.fromEntries(Object.entries(compilerOptions.paths).map(([name, [path = '']]) => [name, [join(root, path)]]))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: { ...compilerOptions, noUnusedLocals: false, jsx: 'react-jsx', paths }, include: ['*.tsx'] }))
  for (const [index, block] of blocks.entries()) writeFileSync(join(folder, `block-${index}.tsx`), `import type React from 'react'\n${own}${block}`)
  const checked = await promisify(execFile)(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder], { cwd: folder }).then(() => '', ({ stdout }: { stdout: string }) => stdout)
  expect(checked).toBe('')
})

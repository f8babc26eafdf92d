import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'

const root = dirname(dirname(fileURLToPath(import.meta.resolve('heed'))))
const docs = join(root, 'dist/docs')

test('[C6.3] [C6.5] the package has llms.txt, whose links lead to its pages, and a reference for each of its entries', () => {
  const list = readFileSync(join(docs, 'llms.txt'), 'utf8')
  const links = [...list.matchAll(/\]\(([^)]+)\)/g)].map(([, path = '']) => path)
  assert.ok(links.length > 50, list)
  assert.deepEqual(links.filter((path) => !existsSync(join(docs, path))), [])
  assert.match(readFileSync(join(docs, 'llms-full.txt'), 'utf8'), /^# heed\/react$/m)
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, unknown> }
  const entries = Object.keys(exports).filter((path) => path !== './package.json').map((path) => (path === '.' ? 'heed' : path.slice(2)))
  assert.deepEqual(readdirSync(join(docs, 'api')).toSorted(), [...entries, 'unexported'].map((name) => `${name}.md`).toSorted())
})

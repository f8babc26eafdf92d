import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

/** The adversarial cases that watches were designed against: schemas, rendering, control, metadata, policies, lifecycle. */
const numbers = Array.from({ length: 53 }, (_, index) => index + 1)

it('each of the 53 adversarial cases has a test by its number', () => {
  const root = join(import.meta.dirname, '../..')
  const files = globSync(['src/{watch,channel,policy}/**/*.test.ts', 'test/{watch,channel,policy,http}/**/*.{test,campaign}.ts'], { cwd: root })
  const texts = files.filter((file) => !file.endsWith('cases.test.ts')).map((file) => readFileSync(join(root, file), 'utf8'))
  // In titles: `(case 12)`, `(cases 6 and 7)`, `case 12: …`.
  const cited = texts.flatMap((text) => [...text.matchAll(/\bcases? (\d+(?:(?:, | and |–|-)\d+)*)/g)].flatMap(([, list = '']) => numbersIn(list)))
  expect(numbers.filter((number) => !cited.includes(number))).toEqual([])
})

function numbersIn(list: string): number[] {
  const range = /^(\d+)[–-](\d+)$/.exec(list)
  if (!range) return list.split(/, | and /).map(Number)
  const [first, last] = [Number(range[1]), Number(range[2])]
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

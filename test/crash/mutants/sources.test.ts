import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { mutants as ofChaos } from '../../chaos/mutants.ts'
import type { Kind } from '../kind.ts'
import { kinds } from '../kinds.ts'

const source = join(import.meta.dirname, '../../../src')

// A build that is broken on purpose replaces text of the source. The campaigns that build them take minutes: this finds at once that the text changed.
const chaos: Pick<Kind, 'name' | 'mutants'> = { name: 'chaos', mutants: Object.fromEntries(ofChaos.map((mutant) => [mutant.name, mutant])) }

describe.each<Pick<Kind, 'name' | 'mutants'>>([...kinds, chaos])('the builds of $name that are broken on purpose', ({ mutants }) => {
  it.each(Object.entries(mutants))('%s: change text that the source has', (_, { fault: { file, changes } }) => {
    const text = readFileSync(join(source, file), 'utf8')
    expect(changes.filter(([before]) => !text.includes(before))).toEqual([])
  })
})

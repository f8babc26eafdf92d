import { describe, expect, it } from 'vitest'
import { checkOutsidePattern } from './outside-pattern.ts'

describe('a pattern of a schema from outside', () => {
  it.each([
    '^[0-9]{6}$', '^[a-z]+(-[a-z]+)*$', '^\\d{4}-\\d{2}-\\d{2}$', '^(?:yes|no)$', '^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$', '^(\\+[1-9])?[0-9 ]{5,20}$',
    '^/(?:[a-z]/)*$', '^(?:a[0-9]|b[0-9])+$', '\\p{Lu}+', '^#[0-9a-fA-F]{6}$', '^(?:[a-z]{2}){1,3}$', '', '^(?:,[^,]*)*$',
  ])('[H7.1] %j is accepted', (pattern) => {
    expect(checkOutsidePattern(pattern)).toBeUndefined()
  })

  it.each([
    ['^(a+)+$', 'several ways'], ['^(a*)*$', 'several ways'], ['^(a|a)*$', 'several ways'], ['^(a|aa)+$', 'several ways'], ['(\\w+\\s?)*', 'several ways'],
    ['^(?:[a-z]+)+$', 'several ways'], ['(?:(?:ab)+)+', 'several ways'], ['^(a?)*$', 'several ways'], ['(x+x+)+y', 'several ways'], ['^(?:-[a-z-]+)*$', 'several ways'],
    ['^(.)\\1$', 'backreference'], ['^(?<n>a)\\k<n>$', 'backreference'], ['^(?=.*[A-Z])', 'ahead'], ['(?<!a)b', 'ahead'], ['a*a*a*a*a*a*a*a*a*b', 'repetitions'],
    ['[', 'not a regular expression'], ['a'.repeat(257), 'longer'],
  ])('[H7.1] %j is rejected', (pattern, problem) => {
    expect(checkOutsidePattern(pattern)).toContain(problem)
  })
})

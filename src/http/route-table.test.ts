import { expect, it } from 'vitest'
import { RouteTable } from './route-table.ts'

const table = new RouteTable<string>()
for (const [method, path] of [['GET', '/a'], ['POST', '/a/:id/go'], ['POST', '/a/:id/all'], ['GET', '/a/:id/:part'], ['GET', '/a/one/go']] as const) table.add(method, path, `${method} ${path}`)
const at = (path: string) => {
  const found = table.find(path)
  return found && [[...found.targets.values()].join(' '), found.params]
}

it('finds the path that is named before the one that takes anything, and goes back where that leads nowhere', () => {
  expect(at('/a')).toEqual(['GET /a', {}])
  expect(at('/a/7/go')).toEqual(['POST /a/:id/go', { id: '7' }])
  expect(at('/a/one/go')).toEqual(['GET /a/one/go', {}])
  expect(at('/a/one/all')).toEqual(['POST /a/:id/all', { id: 'one' }])
  expect(at('/a/all/all')).toEqual(['POST /a/:id/all', { id: 'all' }])
  expect(at('/a/x/other')).toEqual(['GET /a/:id/:part', { id: 'x', part: 'other' }])
})

it('finds nothing where nothing is, and takes names as they were meant', () => {
  for (const path of ['', '/', '/a/', '/a//go', '/b', '/a/1', '/a/1/2/3', '//a']) expect([path, at(path)]).toEqual([path, undefined])
  expect(at('/a/caf%C3%A9%2F1/go')).toEqual(['POST /a/:id/go', { id: 'café/1' }])
  expect(at('/a/100%/go')).toEqual(['POST /a/:id/go', { id: '100%' }])
  expect(at('/a/__proto__/go')).toEqual(['POST /a/:id/go', { id: '__proto__' }])
})

it('refuses two names for one place', () => {
  expect(() => table.add('GET', '/a/:other/go', 'x')).toThrow('Two names')
})

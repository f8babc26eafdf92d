import { expect, it } from 'vitest'
import { RouteTable } from './route.ts'

const table = new RouteTable<string>()
for (const route of ['GET /a', 'POST /a/:id/go', 'POST /a/:id/all', 'GET /a/:id/:part', 'GET /a/one/go']) {
  const [method = '', path = ''] = route.split(' ')
  table.add(method, path, route)
}
const at = (path: string) => {
  const match = table.find(path)
  return match && [[...match.targets.values()].join(' '), match.params]
}

it('prefers a literal segment to a parameter, and backtracks where the literal one leads to no route', () => {
  expect(at('/a')).toEqual(['GET /a', {}])
  expect(at('/a/7/go')).toEqual(['POST /a/:id/go', { id: '7' }])
  expect(at('/a/one/go')).toEqual(['GET /a/one/go', {}])
  expect(at('/a/one/all')).toEqual(['POST /a/:id/all', { id: 'one' }])
  expect(at('/a/all/all')).toEqual(['POST /a/:id/all', { id: 'all' }])
  expect(at('/a/x/other')).toEqual(['GET /a/:id/:part', { id: 'x', part: 'other' }])
})

it('finds no route for an unknown path, and decodes parameters', () => {
  for (const path of ['', '/', '/a/', '/a//go', '/b', '/a/1', '/a/1/2/3', '//a']) expect([path, at(path)]).toEqual([path, undefined])
  expect(at('/a/caf%C3%A9%2F1/go')).toEqual(['POST /a/:id/go', { id: 'café/1' }])
  expect(at('/a/100%/go')).toEqual(['POST /a/:id/go', { id: '100%' }])
  expect(at('/a/__proto__/go')).toEqual(['POST /a/:id/go', { id: '__proto__' }])
})

it('rejects two names for one parameter', () => {
  expect(() => table.add('GET', '/a/:other/go', 'x')).toThrow('Two names for one parameter of /a/:other/go: id and other.')
})

import { describe, expect, it } from 'vitest'
import { Agent } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { served } from './serving.ts'

const guide = () => ({ guide: new Agent({ id: 'guide', model: scriptedModel([]) }) })

interface Parameter {
  name: string
  in: string
  style?: string
  explode?: boolean
  schema?: { type?: unknown }
  content?: object
}
interface Document {
  servers: unknown[]
  paths: Record<string, Record<string, { security: unknown[]; parameters: Parameter[]; responses: Record<string, { content?: Record<string, { schema?: object }> }> }>>
}

describe('queries', () => {
  it('[H5.4] read objects as the document says: by their keys', async () => {
    const { ask } = await served(guide())
    const make = (threadId: string, metadata: object) => ask('/memory/threads?agentId=guide', { json: { threadId, resourceId: 'user-1', metadata } })
    await make('trip', { kind: 'trip', days: 5, open: true, code: '5' })
    await make('work', { kind: 'work', days: 6, open: false })
    const found = async (query: string) => {
      const answer = await ask(`/memory/threads?agentId=guide&resourceId=user-1&${query}`)
      return ((await answer.json()) as { threads: Array<{ id: string }> }).threads.map(({ id }) => id)
    }
    expect(await found('metadata[kind]=trip')).toEqual(['trip'])
    expect(await found('metadata%5Bkind%5D=work')).toEqual(['work'])
    expect(await found('metadata[days]=5&metadata[open]=true')).toEqual(['trip'])
    expect(await found('metadata[code]=%225%22')).toEqual(['trip'])
    expect(await found('metadata[kind]=none')).toEqual([])
    expect(await found(`metadata=${encodeURIComponent('{"kind":"trip"}')}`)).toEqual(['trip'])
    expect(await found('orderBy[field]=createdAt&orderBy[direction]=ASC')).toEqual(['trip', 'work'])
  })

  it.each(['/memory/threads?resourceId=user-1&meta[kind]=trip', '/memory/threads?resourceId=user-1&perpage=1', '/agents?x=1', '/agents/guide/threads/t1/queue?limit=3'])(
    '[H5.4] with a parameter that the route does not have are refused by its name: %s',
    async (path) => {
      const { ask } = await served(guide())
      const answer = await ask(path)
      const name = decodeURIComponent(/[?&]([^&=]*)=[^&]*$/.exec(path)?.[1] ?? '')
      expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_argument', details: { field: name } }])
    },
  )

  it.each([
    'resourceId[]=bob', 'parentId[x]=zzz', 'perPage[]=1', 'orderBy[nope]=1', 'orderBy[]=createdAt', 'metadata[]=a1', 'metadata[kind][]=a1', 'metadata={}&metadata[kind]=a1', 'agentId[]=x', 'requestContext[a]=1',
  ])('[H5.4] with a key of a parameter that is no object, or does not have it, are refused by its name: %s', async (query) => {
    const { ask } = await served(guide())
    const answer = await ask(`/memory/threads?${query}`)
    const name = /([^&=]*)=[^&]*$/.exec(query)?.[1]
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'invalid_argument', details: { field: name } }])
  })

  it('[H5.4] with an unknown parameter are refused by its name on every route that needs a principal', async () => {
    const { ask } = await served(guide())
    const { paths } = (await (await ask('/openapi.json')).json()) as Document
    const asked = Object.entries(paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, { security }]) => ({ path, method, security })))
    for (const { path, method, security } of asked) {
      const url = `${path.slice('/api'.length).replace('{agentId}', 'guide').replaceAll(/\{\w+\}/g, 'x')}?limt=1`
      const answer = await ask(url, { method: method.toUpperCase(), ...(method === 'get' || method === 'delete' ? {} : { body: '{}', headers: { 'content-type': 'application/json' } }) })
      const { details } = (await answer.json()) as { details?: { field?: string } }
      // Probes and senders of webhooks add what they need.
      if (security.length === 0) expect(details?.field, path).toBeUndefined()
      else expect([path, answer.status, details?.field]).toEqual([path, 400, 'limt'])
    }
    expect(asked.length).toBeGreaterThan(80)
  })

  it('[H4.1] with JSON that is nested too deep are refused by name, in every parameter that takes JSON', async () => {
    const { ask } = await served(guide())
    const { paths } = (await (await ask('/openapi.json')).json()) as Document
    const takesJson = ({ name, in: place, schema, content }: Parameter) => place === 'query' && (name === 'requestContext' || schema?.type === 'object' || content !== undefined)
    const values = [`${'{"a":'.repeat(300)}1${'}'.repeat(300)}`, `${'['.repeat(1_000)}${']'.repeat(1_000)}`]
    let tried = 0
    for (const [path, methods] of Object.entries(paths)) {
      for (const { name } of methods.get?.parameters.filter(takesJson) ?? []) {
        for (const value of values) {
          const url = path.slice('/api'.length).replace('{agentId}', 'guide').replaceAll(/\{\w+\}/g, 'x')
          const answer = await ask(`${url}?${new URLSearchParams({ resourceId: 'user-1', ...(path.endsWith('/search') && { searchQuery: 'x' }), [name]: value })}`)
          const { code, details } = (await answer.json()) as { code?: string; details?: { field?: string } }
          expect([path, name, answer.status, code, details?.field]).toEqual([path, name, 400, 'invalid_argument', name])
          tried += 1
        }
      }
    }
    expect(tried).toBeGreaterThan(50)
  })

  it('[H5.4] are described for generators: each object has a style, each answer a schema, and the document its server', async () => {
    const { ask } = await served(guide())
    const { paths, servers } = (await (await ask('/openapi.json')).json()) as Document
    expect(servers).toEqual([expect.objectContaining({ url: '/' })])
    const operations = Object.values(paths).flatMap((path) => Object.values(path))
    const parameters = operations.flatMap((operation) => operation.parameters.filter((parameter) => parameter.in === 'query'))
    expect(parameters.filter(({ schema, style }) => schema?.type === 'object' && style !== 'deepObject')).toEqual([])
    expect(parameters.filter(({ schema, explode }) => schema?.type === 'array' && explode !== true)).toEqual([])
    expect(parameters.filter(({ schema, content }) => !schema && !content)).toEqual([])
    const contents = operations.flatMap((operation) => Object.values(operation.responses).flatMap(({ content }) => Object.values(content ?? {})))
    expect(contents.length).toBeGreaterThan(100)
    expect(contents.filter(({ schema }) => schema === undefined)).toEqual([])
  })
})

import { expect, it, onTestFinished } from 'vitest'
import { scopeOfRequest } from '../../../src/http/auth/scopes.ts'
import { document, routes } from '../../openapi/document.ts'
import type { Names } from '../every-route.ts'
import { expectTable, Matrix, needsAll, needsRun, requestTo, table, waitingFor, type Operation, type Told } from './world.ts'

const { paths } = document as unknown as { paths: Record<string, Record<string, Operation>> }

/**
 * Who asks for what. `own`: a thread of Alice, by Alice. `thread`: the same thread, by another who names its own resource. `resource`: by
 * another who names Alice's. `only`, `without`: Alice, with no other scope than that of the route, and with all others.
 */
const columns = ['nobody', 'end user: own', 'thread', 'tenant: own', 'thread', 'resource', 'operator', 'only', 'without']

function cell({ status, code, details }: Told): string {
  if (status < 400) return String(status)
  return `${status} ${details?.scope === undefined ? code : `scope ${String(details.scope)}`}`
}

/** The cells of one route. A principal that may change something gets a thread of its own. */
async function row(world: Matrix, method: string, path: string, operation: Operation, scope: string | undefined): Promise<string[]> {
  const thread = (name: string) => world.furnish(`${method} ${path} ${name}`.replaceAll(/\W+/g, '-'), waitingFor(path), needsAll(path), needsRun(path))
  const shared = await thread('shared')
  const told = async (who: string | undefined, names: Names) => {
    const { url, init } = requestTo(path, method, operation, names)
    return cell(await world.ask(who, url, init))
  }
  const foreign = { ...shared, resourceId: 'bob' }
  const cells = [
    await told(undefined, shared), await told('end user', await thread('user')), await told('other end user', foreign), await told('tenant', await thread('tenant')),
    await told('other tenant', foreign), await told('other tenant', shared), await told('operator', await thread('operator')),
    scope === undefined ? '-' : await told(`only ${scope}`, await thread('only')), scope === undefined ? '-' : await told(`without ${scope}`, shared),
  ]
  // What others asked for changed nothing of it, however they were answered.
  const left = await world.ask('tenant', `/memory/threads/${shared.threadId}?resourceId=alice`, { method: 'GET', headers: {} })
  expect([path, left.status]).toEqual([path, 200])
  return cells
}

it('[H8.1] [H3.2] every route answers everyone as the table says: routes.txt', { timeout: 600_000 }, async () => {
  const world = new Matrix()
  onTestFinished(() => world.close())
  const rows: string[][] = []
  for (const route of routes) {
    const path = `/api${route.path.replaceAll(/:(\w+)/g, '{$1}')}`
    const operation = paths[path]?.[route.method.toLowerCase()]
    expect(operation, path).toBeDefined()
    if (!operation) continue
    const scope = scopeOfRequest(route, route.path.endsWith('/send-tool-approval') ? { approved: true } : {})
    rows.push([`${route.method} ${route.path}`, scope ?? 'none', ...(await row(world, route.method.toLowerCase(), path, operation, scope))])
  }
  const all = table([['route', 'scope', ...columns], ...rows])
  expectTable(new URL('routes.txt', import.meta.url), all)
  // What the table must never say.
  for (const [name = '', scope = '', nobody = '', , , , thread = '', resource = '', , , without = ''] of rows) {
    const isAnonymous = routes.some((route) => `${route.method} ${route.path}` === name && route.anonymous)
    if (!isAnonymous) expect([name, nobody]).toEqual([name, '401 unauthorized'])
    if (scope !== 'none') expect([name, without]).toEqual([name, `403 scope ${scope}`])
    // Speech is of no resource.
    if (scope !== 'none' && !/^\w+ \/replies|\/(speak|listen)$/.test(name)) expect([name, resource]).toEqual([name, expect.stringMatching(/^(403|409|404)/) as string])
    if (scope !== 'none' && scope !== 'read') expect([name, thread]).toEqual([name, expect.stringMatching(/^(4|200$)/) as string])
  }
})

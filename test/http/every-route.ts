interface Operation {
  security: readonly unknown[]
  parameters: Array<{ name: string; in: string }>
  /** Routes that take sound have no JSON. */
  requestBody?: { content: { 'application/json'?: { schema: { properties: Record<string, unknown>; required?: string[] } } } }
}

export type Names = Record<string, string>

/** Every route and method of the server's OpenAPI document. */
export async function listed(ask: (path: string) => Promise<Response>) {
  const { paths } = (await (await ask('/openapi.json')).json()) as { paths: Record<string, Record<string, Operation>> }
  return Object.entries(paths).flatMap(([path, operations]) => Object.entries(operations).map(([method, operation]) => ({ path, method, operation })))
}

/** A request that is right in everything but whose thread it is about. */
export function request(path: string, method: string, { parameters, requestBody }: Operation, names: Names) {
  // Ids of runs of workflows are apart from those of agents.
  if (path.startsWith('/api/workflows/')) names = { ...names, runId: names.workflowRunId ?? 'x' }
  if (path.includes('{entityType}')) names = { ...names, entityType: 'AGENT', entityId: 'guide' }
  const url = path.slice('/api'.length).replace('{agentId}', 'guide').replaceAll(/\{(\w+)\}/g, (_, name: string) => names[name] ?? 'x')
  const inQuery = parameters.filter(({ in: place, name }) => place === 'query' && name in names)
  const search = new URLSearchParams(inQuery.map(({ name }) => [name, names[name] ?? '']))
  if (parameters.some(({ name }) => name === 'searchQuery')) search.set('searchQuery', 'Hello')
  if (path.endsWith('/versions/compare')) for (const name of ['from', 'to']) search.set(name, '0')
  const schema = requestBody?.content['application/json']?.schema
  const body = schema && {
    ...Object.fromEntries((schema.required ?? []).map((name) => [name, samples[name] ?? 'x'])),
    ...Object.fromEntries(Object.keys(names).filter((name) => name in schema.properties && !(name === 'runId' && ('message' in schema.properties || 'memory' in schema.properties))).map((name) => [name, names[name]])),
    ...('ids' in schema.properties ? { ids: [names.notificationId] } : {}),
    ...('notification' in schema.properties ? { notification: { source: 'x', kind: 'x', summary: 'x' } } : {}),
    ...(path === '/api/scores' ? { score: { runId: names.runId ?? 'x', threadId: names.threadId ?? 'x', resourceId: names.resourceId ?? 'x', scorerId: 'thumbs', score: 1 } } : {}),
    ...('cron' in schema.properties ? { id: names.scheduleId, cron: '0 0 * * *', message: 'x' } : {}),
    ...('watch' in schema.properties ? { id: names.watchId, watch: { description: 'x', expected_channels: ['sms'] } } : {}),
    ...('memory' in schema.properties ? { memory: { thread: names.threadId, resource: names.resourceId } } : {}),
    ...('messages' in schema.properties && path.includes('/memory/') ? { messages: [{ id: names.signalId, role: 'user', threadId: names.threadId, resourceId: names.resourceId, content: { format: 2, parts: [{ type: 'text', text: 'x' }] } }] } : {}),
  }
  return {
    url: search.size > 0 ? `${url}?${search}` : url,
    init: { method: method.toUpperCase(), ...(body ? { body: JSON.stringify(body) } : {}), headers: body ? { 'content-type': 'application/json' } : requestBody ? { 'content-type': 'audio/wav' } : ({} as Record<string, string>) },
  }
}

const samples: Record<string, unknown> = {
  message: 'Hi', messages: 'Hi', signal: { type: 'notification', contents: 'x' }, state: { id: 'lane-1', cacheKey: 'k2', contents: 'x' }, approved: true, resumeData: {}, signalIds: ['sig-2'], messageIds: ['sig-1'], workingMemory: 'x',
  status: 'archived', base: 0, overrides: { instructions: 'Edited.' }, expected: 0, version: 0,
}

import type { JSONSchema, Route } from '../route.ts'

/** The routes as an OpenAPI document, with the schemas that validate requests. */
export function openApi(routes: readonly Route[], prefix: string): JSONSchema {
  const paths: Record<string, Record<string, JSONSchema>> = {}
  for (const route of routes) {
    const path = prefix + route.path.replaceAll(/:(\w+)/g, '{$1}')
    ;(paths[path] ??= {})[route.method.toLowerCase()] = operation(route)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Heed', version: '1', description: 'Agent threads that listen.' },
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: {
        Error: {
          type: 'object',
          properties: { error: { type: 'string' }, code: { type: 'string' }, retryable: { type: 'boolean' }, details: { type: 'object' } },
          required: ['error', 'code', 'retryable'],
        },
      },
    },
  }
}

function operation({ method, path, summary, query, body, response, responseSchema, anonymous, send }: Route): JSONSchema {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
    name, in: 'query', required: query?.required?.includes(name) ?? false, schema,
  }))
  const json = { 'application/json': responseSchema ? { schema: responseSchema } : {} }
  return {
    summary,
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^A-Za-z0-9]+(\w)/g, (_, letter: string) => letter.toUpperCase())}`,
    security: anonymous ? [] : [{ bearer: [] }],
    parameters: [...inPath, ...inQuery, ...(send ? [idempotencyKey] : [])],
    ...(body ? { requestBody: { required: true, content: { 'application/json': { schema: body } } } } : {}),
    responses: {
      200: { description: summary, content: response === 'events' ? { 'text/event-stream': {} } : json },
      default: failure,
    },
  }
}

const idempotencyKey = {
  name: 'Idempotency-Key', in: 'header', required: false, schema: { type: 'string', maxLength: 200 },
  description: 'The same key is the same signal.',
}

const failure = { description: 'The error.', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } }

import openapiTS, { type OpenAPI3 } from 'openapi-typescript'
import { openApi, type Route } from '../../src/http/route.ts'
import { allRoutes } from '../../src/http/routes/index.ts'
import type { Operations } from '../../src/http/routes/operations.ts'

/** All routes of a server, without a server. */
export const routes: Route[] = allRoutes({ openApi: () => ({}) } as unknown as Operations)

/** The document that a server answers with at `/api/openapi.json`. */
export const document = openApi(routes, '/api')

/** The types of a client, as a user generates them. */
export function generateTypes(): Promise<string> {
  // The generator changes the document that it is given.
  return openapiTS(structuredClone(document) as unknown as OpenAPI3)
}

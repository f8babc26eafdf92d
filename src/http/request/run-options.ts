import { HeedError } from '../../base/errors.ts'
import type { AgentExecutionOptions } from '../../run/options.ts'
import type { RequestContext } from '../../run/request-context.ts'
import type { Call } from '../route.ts'
import { runOptions } from '../schema/schemas.ts'

/** The options of a run from a request's body, with the request context of its caller. A promise only if the context is one. */
export function readRunOptions(
  call: Pick<Call, 'context'>, body: Record<string, unknown>,
): AgentExecutionOptions | Promise<AgentExecutionOptions> {
  const context = call.context(body.requestContext as Record<string, unknown> | undefined)
  return context instanceof Promise ? context.then((resolved) => pickRunOptions(body, resolved)) : pickRunOptions(body, context)
}

function pickRunOptions(body: Record<string, unknown>, requestContext: RequestContext | undefined): AgentExecutionOptions {
  const options: Record<string, unknown> = {}
  for (const name of Object.keys(body)) {
    if (name !== 'requestContext' && Object.hasOwn(runOptions, name) && body[name] !== undefined) options[name] = body[name]
  }
  if (requestContext) options.requestContext = requestContext
  if (body.clientTools !== undefined) options.clientTools = readClientTools(body.clientTools as Record<string, unknown>)
  return options
}

/** Tools that the client executes: a description and a schema, without code. */
function readClientTools(tools: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      if (typeof tool !== 'object' || tool === null) {
        const message = `clientTools.${name} must be an object with a description and an inputSchema.`
        throw new HeedError('invalid_tool', message, { details: { tool: name } })
      }
      const { description, inputSchema, parameters } = tool as Record<string, unknown>
      const schema = inputSchema ?? parameters ?? { type: 'object', properties: {} }
      return [name, { ...(typeof description === 'string' ? { description } : {}), inputSchema: schema }]
    }),
  )
}

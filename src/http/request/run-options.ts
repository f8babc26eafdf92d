import type { AgentExecutionOptions } from '../../run/options.ts'
import type { RequestContext } from '../../run/request-context.ts'
import { HeedError } from '../../base/errors.ts'
import type { Call } from '../route.ts'
import { runOptions } from '../schema/schemas.ts'

/** A run's options as they came over the wire, and the context of whoever asks. */
export function optionsFrom(call: Pick<Call, 'context'>, body: Record<string, unknown>): AgentExecutionOptions | Promise<AgentExecutionOptions> {
  const context = call.context(body.requestContext as Record<string, unknown> | undefined)
  return context instanceof Promise ? context.then((found) => within(found, body)) : within(context, body)
}

function within(requestContext: RequestContext | undefined, body: Record<string, unknown>): AgentExecutionOptions {
  const options: Record<string, unknown> = {}
  for (const name of Object.keys(body)) if (name !== 'requestContext' && Object.hasOwn(runOptions, name) && body[name] !== undefined) options[name] = body[name]
  if (requestContext) options.requestContext = requestContext
  if (body.clientTools !== undefined) options.clientTools = clientTools(body.clientTools as Record<string, unknown>)
  return options
}

/** Tools that the caller runs: a description and a shape, and nothing that runs here. */
function clientTools(tools: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(tools).map(([name, tool]) => {
      if (typeof tool !== 'object' || tool === null) throw new HeedError('invalid_tool', `clientTools.${name} must be an object with a description and an inputSchema.`, { details: { tool: name } })
      const { description, inputSchema, parameters } = tool as Record<string, unknown>
      return [name, { ...(typeof description === 'string' ? { description } : {}), inputSchema: inputSchema ?? parameters ?? { type: 'object', properties: {} } }]
    }),
  )
}

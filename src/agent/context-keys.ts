import { isHeedError } from '../base/errors.ts'
import { compileSchema } from '../schema/compile.ts'
import type { AgentConfig } from './config.ts'

/** The keys of the request context that the agent's schema declares. */
export function contextKeys({ requestContextSchema }: AgentConfig): Promise<readonly string[]> | undefined {
  return requestContextSchema === undefined ? undefined : declaredKeys(requestContextSchema)
}

async function declaredKeys(schema: unknown): Promise<readonly string[]> {
  try {
    const { properties } = await compileSchema(schema, 'requestContextSchema').jsonSchema()
    return Object.keys(properties ?? {})
  } catch (error) {
    // A schema that validates but can't name its keys declares none: the run says what it lost.
    if (isHeedError(error) && error.code === 'invalid_schema') return []
    throw error
  }
}

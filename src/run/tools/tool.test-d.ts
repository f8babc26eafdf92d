import { jsonSchema } from 'ai'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import { createTool } from './tool.ts'
import type { ToolInput, ToolOutput } from './tool-set.ts'

// Input is what comes out of the schema, the result what `execute` gives.
const weather = createTool({
  id: 'weather',
  inputSchema: z.object({ city: z.string(), days: z.string().transform(Number) }),
  execute: async (input, context) => {
    expectTypeOf(input).toEqualTypeOf<{ city: string; days: number }>()
    expectTypeOf(context.abortSignal).toEqualTypeOf<AbortSignal>()
    return { sky: 'rain' as const, degrees: input.days }
  },
  toModelOutput: (output, { input }) => {
    expectTypeOf(output.degrees).toEqualTypeOf<number>()
    expectTypeOf(input.city).toEqualTypeOf<string>()
    return { type: 'text', value: output.sky }
  },
  requireApproval: ({ city }) => city === 'Atlantis',
})
expectTypeOf(weather.id).toEqualTypeOf<'weather'>()
expectTypeOf<ToolInput<typeof weather>>().toEqualTypeOf<{ city: string; days: number }>()
expectTypeOf<ToolOutput<typeof weather>>().toEqualTypeOf<{ sky: 'rain'; degrees: number }>()

// Of a generator, what it yields.
const counting = createTool({
  id: 'counting',
  async *execute() {
    yield { n: 1 }
    yield { n: 2 }
  },
})
expectTypeOf<ToolOutput<typeof counting>>().toEqualTypeOf<{ n: number }>()

// Without a schema nothing is known of the input.
createTool({ id: 'any', execute: async (input) => expectTypeOf(input).toBeUnknown() })

// A schema of the AI SDK has its type too.
createTool({
  id: 'typed',
  inputSchema: jsonSchema<{ q: string }>({ type: 'object' }),
  execute: async ({ q }) => expectTypeOf(q).toEqualTypeOf<string>(),
})

// The output schema decides what may be returned.
createTool({ id: 'checked', outputSchema: z.object({ ok: z.boolean() }), execute: async () => ({ ok: true }) })
// @ts-expect-error ok must be a boolean
createTool({ id: 'wrong', outputSchema: z.object({ ok: z.boolean() }), execute: async () => ({ ok: 'yes' }) })

// Suspending and resuming are typed by their schemas.
createTool({
  id: 'login',
  suspendSchema: z.object({ question: z.string() }),
  resumeSchema: z.object({ code: z.string() }),
  execute: async (_, { suspend, resumeData }) => {
    expectTypeOf(resumeData).toEqualTypeOf<{ code: string } | undefined>()
    if (resumeData) return resumeData.code
    // @ts-expect-error the question is missing
    suspend({})
    return suspend({ question: 'Code?' })
  },
})

// @ts-expect-error a tool needs an id
createTool({ execute: async () => 1 })
// @ts-expect-error there is no such option
createTool({ id: 'x', timeout: 5 })
// @ts-expect-error a number is no schema
createTool({ id: 'x', inputSchema: 7 })
// @ts-expect-error the input has no such field
createTool({ id: 'x', inputSchema: z.object({ a: z.string() }), execute: async ({ b }) => b })
// @ts-expect-error data chunks are called data-…
createTool({ id: 'x', execute: async (_, { write }) => write({ type: 'progress', data: 1 }) })

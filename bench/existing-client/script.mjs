import { z } from 'zod'

export const paySchema = z.object({ to: z.string() })

/** What the workflow of both servers does: `double` adds up, `ask` waits for a caller, `last` answers; and a list of questions. */
export const numberSchema = z.object({ n: z.number() })
export const answerSchema = z.object({ by: z.number() })
export const listSchema = z.array(z.number())

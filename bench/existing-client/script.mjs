import { z } from 'zod'

export const paySchema = z.object({ to: z.string() })

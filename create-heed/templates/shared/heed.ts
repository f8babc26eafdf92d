import { Agent, createTool, Heed } from 'heed'
import { LibSQLStore } from 'heed/libsql'
import { z } from 'zod'
import { model } from './model.ts'

export const weather = createTool({
  id: 'weather',
  description: "Today's temperature in a city, in degrees Celsius.",
  inputSchema: z.object({ city: z.string() }),
  execute: ({ city }) => ({ city, celsius: 14 }),
})

export const guide = new Agent({
  id: 'guide',
  instructions: 'You plan trips. Look up the weather before you answer.',
  model,
  tools: { weather },
})

export const heed = new Heed({
  agents: { guide },
  storage: new LibSQLStore({ url: 'file:./heed.db' }),
})

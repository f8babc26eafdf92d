import { z } from 'zod'
import { callParts, instantModel, textParts } from '../../instant-model.mjs'

export const deltas = 50
export const inputSchema = z.object({ city: z.string() })
export const description = 'The weather in a city'
export const instructions = 'You answer questions about the weather.'
export const question = 'Does it rain in Bern?'

const call = callParts(0)
const text = textParts(deltas)

/** Calls the tool in each first step and answers in each second. */
export function model() {
  return instantModel((index) => (index % 2 === 0 ? call : text))
}

export async function execute({ city }) {
  return { city, rain: true, degrees: 7 }
}

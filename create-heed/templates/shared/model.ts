import { scriptedModel } from 'heed/testing'

/**
 * A scripted model, so that the project works without a key. For a real one: npm install @ai-sdk/openai, set OPENAI_API_KEY in .env, and
 *
 *   export const model = 'openai/gpt-5.5'
 */
export const model = scriptedModel(
  [
    { toolCalls: [{ toolName: 'weather', input: { city: 'Bern' } }] },
    { text: ['It is 14 degrees in Bern.', ' Edit model.ts', ' to ask a real model.'] },
  ],
  { loop: true },
)

import { expect, input, perRun, report } from '../../harness/side.mjs'
import { registerSdk } from './sdk.mjs'
import { turnOf } from './turn.mjs'

const ended = registerSdk()
const sample = await perRun(input, await turnOf())
for (const [name, each] of [['invoke_agent weather-agent', 1], ['chat instant', 2], ['execute_tool weather', 1]]) expect(name, ended.get(name), each * (input.warmup + input.runs))
report(sample)

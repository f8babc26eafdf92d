import { median } from '../../harness/median.mjs'
import { input, report, stopwatch } from '../../harness/side.mjs'
import { rawOnPostgres } from '../../postgres/raw.mjs'

const raw = await rawOnPostgres()
const batches = []
for (let batch = -1; batch < input.batches; batch++) {
  await raw.create(`at-once-${batch}`)
  const stop = stopwatch()
  await Promise.all(Array.from({ length: input.signals }, () => raw.store(`at-once-${batch}`)))
  if (batch >= 0) batches.push(stop())
}
await raw.create('in-turn')
const stop = stopwatch()
for (let index = 0; index < input.signals; index++) await raw.store('in-turn')
const apart = stop()
report({
  'at once/s': input.signals / (median(batches.map(({ wall }) => wall)) / 1_000),
  'in turn/s': input.signals / (apart.wall / 1_000),
  cpu: (median(batches.map(({ cpu }) => cpu)) * 1_000) / input.signals,
  inversions: 0,
})

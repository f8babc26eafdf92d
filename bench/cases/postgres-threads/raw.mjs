import { input, report, stopwatch } from '../../harness/side.mjs'
import { costOf } from '../../postgres/database.mjs'
import { rawOnPostgres } from '../../postgres/raw.mjs'

const raw = await rawOnPostgres()
let cpu = 0
let wall = 0
for (let batch = 0; batch < input.batches; batch++) {
  const ids = Array.from({ length: input.threads }, (_, index) => `thread-${batch}-${index}`)
  const stop = stopwatch()
  await Promise.all(ids.map(async (id) => {
    await raw.create(id)
    await raw.turn(id)
  }))
  const spent = stop()
  if (batch === 0) continue
  cpu += spent.cpu
  wall += spent.wall
}
const done = input.threads * (input.batches - 1)
await raw.create('cost')
report({ 'turns/s': done / (wall / 1_000), cpu: cpu / done, ...(await costOf(raw.server, input, () => raw.turn('cost'))) })

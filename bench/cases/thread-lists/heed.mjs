import { expect, input, report, stopwatch } from '../../harness/side.mjs'
import { instantModel, textParts } from '../../instant-model.mjs'
import { heedAgent } from '../../threads/heed.mjs'

const answer = textParts(1)
const { memory } = await heedAgent(instantModel(() => answer))
const ofResource = 1_000

/** Threads of one resource after the other. */
async function fill(from, to) {
  for (let start = from; start < to; start += ofResource) {
    await Promise.all(Array.from({ length: ofResource }, (_, index) => memory.createThread({
      threadId: `thread-${start + index}`, resourceId: `resource-${start / ofResource}`, metadata: { status: index % 10 === 0 ? 'active' : 'done' },
    })))
  }
}

const lists = {
  created: { orderBy: { field: 'createdAt' } },
  updated: { orderBy: { field: 'updatedAt' } },
  'metadata by creation': { metadata: { status: 'active' }, orderBy: { field: 'createdAt' } },
  'metadata by last change': { metadata: { status: 'active' }, orderBy: { field: 'updatedAt' } },
}

async function costs() {
  const found = {}
  for (const [name, { metadata, orderBy }] of Object.entries(lists)) {
    const page = async (index) => {
      const { threads } = await memory.listThreads({ filter: { resourceId: `resource-${index % 10}`, ...(metadata && { metadata }) }, orderBy, perPage: 20 })
      expect('threads of a page', threads.length, 20)
    }
    for (let index = 0; index < 500; index++) await page(index)
    const stop = stopwatch()
    for (let index = 0; index < input.pages; index++) await page(index)
    found[name] = stop().cpu / input.pages
  }
  return found
}

await fill(0, input.first)
const first = await costs()
await fill(input.first, input.all)
const all = await costs()
report(Object.fromEntries(Object.keys(lists).flatMap((name) => [
  [`${name}, first`, first[name]], [`${name}, all`, all[name]], [`${name}, all over first`, all[name] / first[name]],
])))

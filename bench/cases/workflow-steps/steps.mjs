import { expect, input, perRun, report } from '../../harness/side.mjs'

export const count = 20

/** What each step does. */
export async function addOne({ inputData }) {
  return { value: inputData.value + 1 }
}

/** The cost of a step by itself, in a run in memory, and in one that is stored. `start`: makes a run and starts it with this input. */
export async function reportSteps({ inMemory, stored }) {
  const through = (start) => async () => {
    const { status, result } = await start({ inputData: { value: 0 } })
    expect('status', status, 'success')
    expect('result', result.value, count)
  }
  const sample = {}
  const measure = async (name, once) => {
    const { cpu, wall } = await perRun(input, once)
    sample[`${name}, cpu`] = cpu / count
    sample[`${name}, wall`] = wall / count
  }
  await measure('function', async () => {
    let inputData = { value: 0 }
    for (let step = 0; step < count; step++) inputData = await addOne({ inputData })
    expect('result', inputData.value, count)
  })
  await measure('in memory', through(inMemory))
  await measure('stored', through(stored))
  report(sample)
}

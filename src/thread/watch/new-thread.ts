import { isHeedError } from '../../base/errors.ts'

/** What is found on a thread; on one that nothing was sent to yet, nothing. */
export async function unlessNew<Found, Nothing>(finding: Promise<Found>, nothing: Nothing): Promise<Found | Nothing> {
  try {
    return await finding
  } catch (error) {
    if (isHeedError(error) && error.code === 'thread_not_found') return nothing
    throw error
  }
}

import { HeedError } from '../../../base/errors.ts'

const alone = 'Runs of workflows go on by themselves: a process takes over what another has left.'
const internal = 'Workers of a server are no part of its routes: steps run in the processes of the Heed.'
const former = 'It is the former form of another route.'

/** Routes of other servers that this one leaves out, by their method and path, each with the reason. */
const absent: ReadonlyArray<[RegExp, string]> = [
  [/^POST \/workflows\/[^/]+\/restart-all-active-workflow-runs(-async)?$/, alone],
  [/^POST \/workflows\/[^/]+\/runs\/[^/]+\/steps\/execute$/, internal],
  [/^POST \/workflows\/events$/, internal],
  [/^POST \/workflows\/[^/]+\/(stream|observe-stream)-legacy$/, former],
  [/^POST \/agents\/[^/]+\/(generate|stream)-legacy$/, former],
]

/** The error for a route that is left out on purpose. */
export function absentRoute(method: string, path: string): HeedError | undefined {
  const found = absent.find(([routes]) => routes.test(`${method} ${path}`))
  return found && new HeedError('unsupported_route', `There is no route ${path} here. ${found[1]}`)
}
